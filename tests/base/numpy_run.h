/* numpy_run.h - runs a few lines of Python with numpy in a folder, where that is installed. */
#ifndef NUMPY_RUN_H
#define NUMPY_RUN_H
#include <pare_test.h>

#define PYTHON "/usr/bin/python3"

#define NEED_NUMPY()                                                                               \
    do {                                                                                           \
        if (system(PYTHON " -c 'import numpy' >/dev/null 2>&1") != 0)                              \
            SKIP("needs " PYTHON " with numpy");                                                   \
    } while (0)

static inline void numpy_run(const char *dir, const char *script)
{
    char path[300], command[800];
    test_write_file(test_path(path, dir, "script.py"), script, strlen(script));
    snprintf(command, sizeof command, "cd '%s' && " PYTHON " script.py", dir);
    assert_int_equal(system(command), 0);
}
#endif
