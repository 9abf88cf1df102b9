/* cmd_repro.c - pare repro: becomes pare-repro (studies/), the program beside this one. */
#include "cli.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "pare-repro"

static int fail(const char *path)
{
    fprintf(stderr, "pare repro: %s: %s\n", path, strerror(errno));
    return pare_exit_code(PARE_ERR_IO);
}

/* Returns only when it fails. PROGRAM is looked for in the folder of this program; where that is
 * not known, as a shell would. */
static int become_program(int argc, char **argv)
{
    char path[4096];
    char *words[64] = {path};
    if ((size_t)argc + 2 > sizeof words / sizeof *words) {
        fprintf(stderr, "pare repro: %d words are too many\n", argc);
        return pare_exit_code(PARE_ERR_USAGE);
    }
    for (int i = 0; i < argc; i++) words[i + 1] = argv[i];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof PROGRAM);
    const char *const slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    const size_t folder = slash ? (size_t)(slash + 1 - path) : 0;
    snprintf(path + folder, sizeof path - folder, "%s", PROGRAM);
    execvp(path, words);
    return fail(path);
}

int cmd_repro(int argc, char **argv)
{
    opt_format format;
    if (!opt_asks_help(&format, argc, argv)) return become_program(argc, argv);
    /* Its help may be a part of ours (pare help all, the man page): there is more to say after
     * it. */
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(become_program(argc, argv));
    if (child < 0 || waitpid(child, &status, 0) != child) return fail(PROGRAM);
    return WIFEXITED(status) ? WEXITSTATUS(status) : pare_exit_code(PARE_ERR_IO);
}
