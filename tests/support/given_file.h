/* given_file.h - inputs of a test as if they had been read from a file: claims about new inputs are
 * made of files alone. The file has any bytes; the set is the one the test has in its hands. */
#ifndef GIVEN_FILE_H
#define GIVEN_FILE_H
#include <pare/run.h>
#include <pare_test.h>

static const pare_inputs *given_file_set; /* what loading the file gives */

/* For pare_verify_opts.load. */
static inline pare_status given_file_load(pare_inputs *out, pare_arena *a, const pare_model *m,
                                          const char *path, const pare_data_opts *o,
                                          pare_files *files, pare_err *err)
{
    pare_blob *blob = NULL;
    (void)a, (void)m, (void)o;
    const pare_status st = pare_files_read(files, &blob, path, err);
    if (st == PARE_OK) *out = *given_file_set;
    pare_blob_release(blob);
    return st;
}

static inline void given_file_write(const char *path, const pare_inputs *set)
{
    static const char bytes[] = "inputs of a test\n";
    test_write_file(path, bytes, sizeof bytes - 1);
    given_file_set = set;
}
#endif
