/* fontconfig, under cairo, keeps its settings as offsets instead of pointers until its FcFini(). LeakSanitizer cannot
 * follow those and calls them leaks. A host may use fontconfig too, so the library must not end it; leaks of our own
 * are still reported. */
#ifdef VKT_SANITIZED
/* Visible, since the sanitizer's shared library looks for it and everything is compiled with hidden symbols. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}
#else
typedef int vkt_lsan_unused; /* ISO C wants one declaration in every file */
#endif
