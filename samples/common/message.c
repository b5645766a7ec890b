/* common/message.c - see message.h. */
#define _GNU_SOURCE /* program_invocation_name */
#include "common/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/terminal.h"

static bool reported;     /* an error message was printed */
static uint32_t own_rank; /* the rank of this process, set by message_rank; 0: the first rank, or the only process */

const char *program_name(void)
{
    const char *slash = strrchr(program_invocation_name, '/');
    return slash ? slash + 1 : program_invocation_name;
}

static void print(const char *format, va_list args)
{
    char text[2048];
    int n = snprintf(text, sizeof text, "%.40s: ", program_name());
    if (own_rank) n += snprintf(text + n, sizeof text - (size_t)n, "rank %u: ", own_rank);
    vsnprintf(text + n, sizeof text - (size_t)n - 1, format, args);
    strcat(text, "\n");
    terminal_print(stderr, text);
}

void complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(format, args);
    va_end(args);
    reported = true;
}

void message_rank(uint32_t rank)
{
    own_rank = rank;
}

void remark(const char *format, ...)
{
    if (own_rank) return;
    va_list args;
    va_start(args, format);
    print(format, args);
    va_end(args);
}

void complain_of_result(vkt_result r)
{
    if (!reported && !(own_rank && r == VKT_E_PEER)) complain("%s", vkt_result_text(r));
}

void complain_of_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(format, args);
    va_end(args);
    fprintf(stderr, "Try `%s --help' or `%s --usage' for more information.\n", program_name(), program_name());
}

/* Returns whether a message is about a rank other than 0. The transports begin such a message with "rank N ". */
static bool is_of_another(const char *line)
{
    return strncmp(line, "rank ", 5) == 0 && strncmp(line, "rank 0 ", 7) != 0;
}

void message_log(void *user, vkt_log_level level, const char *line)
{
    static const char *const names[] = {
        [VKT_LOG_WARN] = "warning: ", [VKT_LOG_INFO] = "info: ", [VKT_LOG_DEBUG] = "debug: "
    };
    const size_t i = (size_t)level;
    (void)user;
    if (own_rank && is_of_another(line)) return;
    const char *name = i < sizeof names / sizeof *names && names[i] ? names[i] : NULL;
    if (name)
        remark("%s%s", name, line);
    else
        complain("%s", line);
}

static void option_log(void *option, vkt_log_level level, const char *line)
{
    if (own_rank && is_of_another(line)) return;
    if (level == VKT_LOG_ERROR) complain("--%s: %s", (const char *)option, line);
}

vkt_host message_host(const char *option)
{
    return (vkt_host){ .log = option_log, .log_user = (void *)(size_t)option, .log_level = VKT_LOG_ERROR };
}

void parse_arguments(const struct argp *parser, int argc, char **argv, void *input)
{
    char *const path = argc > 0 ? argv[0] : NULL;
    char *slash = path ? strrchr(path, '/') : NULL;
    argp_err_exit_status = 2;
    if (slash) argv[0] = slash + 1; /* getopt's messages begin with argv[0] */
    argp_parse(parser, argc, argv, 0, NULL, input);
    if (path) argv[0] = path;
}
