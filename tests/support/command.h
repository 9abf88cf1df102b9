/* command.h - the built command, run by a test program: beside it in the build folder. */
#ifndef COMMAND_H
#define COMMAND_H
#include <pare_test.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

/* build/tests/ROOM/NAME: build/pare */
static inline const char *command_path(void)
{
    static char path[500];
    if (*path) return path;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 8);
    assert_true(n > 0);
    path[n] = 0;
    for (int up = 0; up < 3; up++) *strrchr(path, '/') = 0;
    snprintf(path + strlen(path), sizeof path - strlen(path), "/pare");
    return path;
}

/* `pare LINE` in the folder, one thread, quiet: its exit code. Words are parted by blanks. */
static inline int command_run(const char *dir, const char *line)
{
    extern char **environ;
    char copy[1000], *argv[64] = {(char *)(uintptr_t)command_path()}, *rest = NULL;
    size_t n = 1;
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_t files;
    snprintf(copy, sizeof copy, "%s -q -t 1", line);
    for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        assert_true(n < 63);
        argv[n++] = w;
    }
    assert_int_equal(posix_spawn_file_actions_init(&files), 0);
    assert_int_equal(posix_spawn_file_actions_addchdir_np(&files, dir), 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "stderr.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(posix_spawn(&pid, argv[0], &files, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&files);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The same, which must end well. */
static inline void command(const char *dir, const char *format, ...)
{
    char line[900], path[300];
    size_t bytes;
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    const int code = command_run(dir, line);
    if (code != 0)
        fail_msg("pare %s: exit %d: %s", line, code,
                 (const char *)test_read_file(test_path(path, dir, "stderr.txt"), &bytes));
}
#endif
