/* model_file.h - pare's own model file (docs/format.md). */
#ifndef PARE_MODEL_MODEL_FILE_H
#define PARE_MODEL_MODEL_FILE_H
#include <pare/model.h>

/* Reads the model in `blob`; packed: as in pare_load_opts. *ours says whether it is a file of pare's; if not, *out is NULL and
 * that is no error. The caller runs pare_model_check and frees *out with pare_model_free. */
PARE_MUST_USE pare_status model_file_read(pare_model **out, bool *ours, pare_blob *blob,
                                          bool packed, pare_err *err);
/* pare_model_save, but every weight in the type that it has in memory: its bytes then have the hash
 * of the certificate. */
PARE_MUST_USE pare_status model_file_write_as_held(const pare_model *m, const char *path,
                                                   bool overwrite, char sha256[PARE_SHA256_HEX],
                                                   pare_err *err);
/* Bytes of the file that pare_model_save would write. */
PARE_MUST_USE pare_status model_file_bytes(uint64_t *out, const pare_model *m, pare_err *err);
#endif
