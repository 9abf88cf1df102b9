/* support.h - the parts of base that only the library's own modules need: checked sums, long
 * parallel work, streams of random bits, hashes of parts, files read once. */
#ifndef PARE_BASE_SUPPORT_H
#define PARE_BASE_SUPPORT_H
#include <pare/base.h>

/* ---- arena ----------------------------------------------------------------------------------- */

/* *out = a * b, a + b; false (and *out untouched) on overflow. */
PARE_MUST_USE bool pare_add(size_t *out, size_t a, size_t b);

/* fn(self) is called when the arena is freed, or reset to a mark made before: for what is not the
 * arena's own memory. The last one first. False: memory is out, and fn will not be called. */
PARE_MUST_USE bool pare_arena_on_free(pare_arena *a, void (*fn)(void *self), void *self);

/* ---- threads and progress -------------------------------------------------------------------- */

/* The same for long blocks: once x->stop is set no further block is begun, and PARE_ERR_STOPPED is
 * returned; what the blocks were to compute must then not be used. */
PARE_MUST_USE pare_status pare_parallel_until(const pare_exec *x, size_t blocks,
                                              void (*fn)(void *ctx, size_t block), void *ctx,
                                              pare_err *err);

/* Work that was not foreseen: what is left of the range is shared with it. */
void pare_steps_add(pare_steps *s, double weight);

/* Seconds left by what was reported until now; INFINITY while that is not known. */
double pare_bar_left(const pare_bar *bar);

/* ---- random numbers: Philox4x32-10, a pure function of (seed, stream, position) -------------- */

/* The function itself: four words for a counter and a key. */
void pare_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);
/* A generator at the beginning of a stream: a value, nothing to free. Copies go on alike. */
uint64_t pare_rng_u64(pare_rng *r);                        /* the next two */
void pare_rng_shuffle(pare_rng *r, uint32_t *v, size_t n); /* all orders equally likely */

/* ---- SHA-256 --------------------------------------------------------------------------------- */

typedef struct pare_sha256 {
    void *state;
} pare_sha256;
/* Begin, add, end; or all at once of memory or of a regular file. `hex`: 64 small digits and a
 * zero. What was begun must be ended. PARE_ERR_MEMORY, and PARE_ERR_IO for what pare_blob_open
 * refuses. */
PARE_MUST_USE pare_status pare_sha256_begin(pare_sha256 *h, pare_err *err);
void pare_sha256_add(pare_sha256 *h, const void *data, size_t bytes);
void pare_sha256_end(pare_sha256 *h, char hex[PARE_SHA256_HEX]); /* frees the state */

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct pare_keyed {
    double key;
    uint32_t id;
} pare_keyed;
/* The largest key first, equal ones by their number. */
void pare_largest_first(pare_keyed *list, size_t n);
void pare_sort_doubles(double *v, size_t n); /* ascending */
static inline size_t pare_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}
static inline size_t pare_max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* One reference, given back with pare_blob_release. Reads regular files only (links are followed):
 * a pipe, a socket, a device or a folder is refused at once and not waited for, and so is a file
 * that becomes longer or shorter while it is read. PARE_ERR_IO names the path. */
pare_blob *pare_blob_retain(pare_blob *b); /* b, with one reference more */
/* a, which lives until pare_arena_free was called once more: for memory that models share. By any
 * thread. */
pare_arena *pare_arena_retain(pare_arena *a);

/* The same of a file that was read already. */
PARE_MUST_USE pare_status pare_text_read_blob(char **out, size_t *bytes, pare_arena *a,
                                              const pare_blob *b, pare_err *err);
/* Names of the plain files in a folder, without hidden ones, sorted byte by byte; in the arena. */
PARE_MUST_USE pare_status pare_folder_list(char ***names, size_t *n, pare_arena *a,
                                           const char *folder, pare_err *err);

/* pare_out_sweep where `path` is a folder: folders of such names go as well. */
size_t pare_folder_sweep(const char *path);

/* Bytes of a file, or of the plain files in a folder; 0: there is none. */
uint64_t pare_path_bytes(const char *path);

/* ---- files read once ------------------------------------------------------------------------- */

/* pare_file_exists and pare_is_dir, as they were when they were asked first: what is not there
 * decides what a loader does as much as what is. PARE_ERR_MEMORY. */
PARE_MUST_USE pare_status pare_files_exists(pare_files *f, bool *out, const char *path,
                                            pare_err *err);
size_t pare_files_count(const pare_files *f);   /* of files that were read, in that order */
uint64_t pare_files_bytes(const pare_files *f); /* of all of them together */
/* Of file i: its path as it was asked for, and the hash of the bytes that were handed out. */
const char *pare_files_path(const pare_files *f, size_t i);
const char *pare_files_sha256(const pare_files *f, size_t i);
/* What identifies the thing at `root`, a file or a folder whose loader has read `f` (one file at
 * least): the hash of that file where it is only one; otherwise the SHA-256 of the lines
 * "HASH  NAME\n", one for each file, sorted byte by byte, where NAME is the path relative to root's
 * folder (the folder itself, or the one that holds the file). By hand:
 *     sha256sum config.json model.safetensors | LC_ALL=C sort | sha256sum
 * PARE_ERR_INPUT for a name with a line end in it. */
PARE_MUST_USE pare_status pare_files_identity(char hex[PARE_SHA256_HEX], const pare_files *f,
                                              const char *root, pare_err *err);
/* `bytes` bytes of rank `from` go to all. */
PARE_MUST_USE pare_status pare_ranks_bcast(const pare_ranks *r, void *data, size_t bytes,
                                           size_t from, pare_err *err);
/* Comes back when every rank has come here. */
PARE_MUST_USE pare_status pare_ranks_barrier(const pare_ranks *r, pare_err *err);
#endif
