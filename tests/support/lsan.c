/* fontconfig, which cairo uses, keeps its settings as offsets instead of pointers until FcFini(). LeakSanitizer cannot
 * follow offsets and reports the settings as leaks. A host may use fontconfig too, so the library must not call
 * FcFini(). Leaks of this project are still reported. */
#ifdef VKT_SANITIZED
/* The symbol is visible, because the sanitizer's shared library looks it up. The project compiles with hidden symbols.
 */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}
#else
typedef int vkt_lsan_unused; /* ISO C requires a declaration in every file */
#endif
