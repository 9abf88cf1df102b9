/* load.c - opens a model: pare's own file, or whatever an importer understands. */
#include "import.h"
#include "model/model_file.h"

#include <string.h>

static pare_status load_file(pare_model **out, bool *ours, const char *path, bool packed,
                             pare_files *files, pare_err *err)
{
    pare_blob *blob = NULL;
    pare_status st = pare_files_read(files, &blob, path, err);
    if (st) return st;
    st = model_file_read(out, ours, blob, packed, err);
    pare_blob_release(blob);
    return st;
}

pare_status pare_model_load_as(pare_model **out, const char *path, const pare_load_opts *opts,
                               pare_files *files, pare_err *err)
{
    static const pare_load_opts usual = PARE_LOAD_OPTS_DEFAULT;
    bool ours = false, folder = false;
    *out = NULL;
    pare_status st = pare_files_is_dir(files, &folder, path, err);
    if (!st && !folder && (st = load_file(out, &ours, path, opts && opts->packed, files, err)) &&
        st == PARE_ERR_IO)
        return st; /* the message names the path already */
    if (!st && !ours) st = import_any(out, path, opts ? opts : &usual, files, err);
    if (!st && ours && opts && (opts->pool != PARE_POOL_NONE || opts->normalize))
        st = pare_fail(err, PARE_ERR_INPUT,
                       "%s: a pare file says itself how its outputs are pooled; pool and normalize "
                       "are for folders and files of other programs",
                       path);
    if (!st) st = pare_model_check(*out, err);
    if (!st) return PARE_OK;
    if (!err || !strstr(err->msg, path)) pare_err_prefix(err, path);
    pare_model_free(*out);
    *out = NULL;
    return st;
}

pare_status pare_model_load(pare_model **out, const char *path, pare_err *err)
{
    *out = NULL;
    pare_files *const files = pare_files_new_unhashed();
    if (!files) return pare_no_memory(err);
    const pare_status st = pare_model_load_as(out, path, NULL, files, err);
    pare_files_free(files);
    return st;
}
