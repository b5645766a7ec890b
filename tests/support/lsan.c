/* Makes LeakSanitizer ignore fontconfig, which cairo uses. Until FcFini(), fontconfig refers to its settings by offsets
 * instead of pointers. LeakSanitizer cannot follow offsets and reports the settings as leaks. The library must not call
 * FcFini(), because the application may use fontconfig too. Leaks of this project are still reported. */
#ifdef VKT_SANITIZED
/* The project compiles with hidden symbols. This symbol is visible, because the sanitizer's shared library looks it up.
 */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}
#else
typedef int vkt_lsan_unused; /* ISO C requires a declaration in every file */
#endif
