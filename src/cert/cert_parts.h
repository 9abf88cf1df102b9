/* cert_parts.h - what the files of this room share about certificates. */
#ifndef PARE_SRC_CERT_PARTS_H
#define PARE_SRC_CERT_PARTS_H
#include <pare/cert.h>

#define CERT_CHAIN "chain" /* the reduction of a composed certificate */

/* The hash that pare_data_ref.seal must be. */
PARE_MUST_USE pare_status cert_seal(char hex[PARE_SHA256_HEX], const pare_cert *c, pare_err *err);
/* Of a file's bytes, or of a folder as pare_file_ref_make says. */
PARE_MUST_USE pare_status cert_hash_path(char hex[PARE_SHA256_HEX], const char *path,
                                         pare_err *err);
/* Every weight that is there, and the vocabulary. */
PARE_MUST_USE pare_status cert_tensor_hashes(pare_tensor_hash **out, size_t *n, pare_arena *a,
                                             const pare_model *m, pare_err *err);
/* `code` naming the first place where the links do not form one chain; the arena is for words. */
PARE_MUST_USE pare_status cert_links_fit(pare_cert *const *links, size_t n, pare_arena *a,
                                         pare_status code, pare_err *err);
/* What a composed certificate says: reduction, norm, domain, bounds, measured (the sum), and one
 * hypothesis per link. Files, data and seed are left alone. */
PARE_MUST_USE pare_status cert_add_up(pare_cert *out, pare_arena *a, pare_cert *const *links,
                                      size_t n, pare_err *err);
#endif
