/* pare/base.h - what everything stands on: status and error, arena, threads, progress, random
 * numbers, hashes, files, arrays (.npy, .npz), processes (MPI). Knows nothing of models.
 *
 * Three kinds of "no" are never mixed:
 *   a programmer's mistake   PARE_ASSERT, on in release builds, stops with file:line;
 *   the world (file, memory) a pare_status, must-use, with a message in pare_err;
 *   mathematics              not an error: the certificate says which hypothesis fails. */
#ifndef PARE_BASE_H
#define PARE_BASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PARE_MUST_USE          __attribute__((warn_unused_result))
#define PARE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define PARE_NORETURN          __attribute__((noreturn)) /* _Noreturn is not C++ */

/* ---- status and error ------------------------------------------------------------------------ */

typedef enum pare_status {
    PARE_OK = 0,
    PARE_ERR_USAGE,     /* the caller's options make no sense             exit 1 */
    PARE_ERR_INPUT,     /* a file is malformed, a shape is wrong          exit 2 */
    PARE_ERR_IO,        /* open, read, write, rename, a full disk         exit 2 */
    PARE_ERR_MEMORY,    /* out of memory                                  exit 2 */
    PARE_ERR_NONFINITE, /* a weight or an input is nan or inf             exit 2 */
    PARE_ERR_NUMERIC,   /* LAPACK gave up                                 exit 2 */
    PARE_ERR_PROMISE,   /* max_error or a budget cannot be met            exit 3 */
    PARE_ERR_VERIFY,    /* a certificate is not true, a self-check failed exit 4 */
    PARE_ERR_STOPPED    /* the caller's stop flag was set (pare_exec)     exit 130 */
} pare_status;

/* Where a function writes what went wrong. Every function takes NULL as well. */
typedef struct pare_err {
    pare_status code;
    char msg[600];
} pare_err;

/* Writes the message and returns `code`, so that a function can end in `return pare_fail(...)`. */
pare_status pare_fail(pare_err *err, pare_status code, const char *fmt, ...) PARE_PRINTF(3, 4);
/* Same, for the one message every allocation shares. */
pare_status pare_no_memory(pare_err *err);
/* Puts `prefix: ` before a message already in err: the file whose tensor was wrong. */
void pare_err_prefix(pare_err *err, const char *prefix);
/* Puts the path of a file before the message of st, unless it is in it already or the fault lies in
 * memory or options. Returns st. */
pare_status pare_err_path(pare_err *err, pare_status st, const char *path);
/* The exit code of the command for a status: 0, 1, 2, 3 or 4; 130, what shells report after Ctrl-C,
 * for a call that was stopped. */
int pare_exit_code(pare_status st);

#define PARE_ASSERT(cond) ((cond) ? (void)0 : pare_assert_failed(__FILE__, __LINE__, #cond))
/* Says where on stderr and aborts: what PARE_ASSERT calls. */
PARE_NORETURN void pare_assert_failed(const char *file, int line, const char *what);

/* ---- arena ----------------------------------------------------------------------------------- */

/* Not for several threads at once: each thread that allocates has its own. */
typedef struct pare_arena pare_arena;
typedef struct pare_mark {
    void *chunk, *large, *cleanup;
    size_t used;
} pare_mark;

PARE_MUST_USE pare_arena *pare_arena_new(void); /* NULL when memory is out */
void pare_arena_free(pare_arena *a);            /* frees everything; accepts NULL */
/* count x size bytes, zeroed, 64-byte aligned; NULL when memory is out or the product overflows. */
PARE_MUST_USE void *pare_alloc(pare_arena *a, size_t count, size_t size);
/* Copies of a text, of its first n bytes, and of what a format makes; in the arena, NULL when
 * memory is out. */
PARE_MUST_USE char *pare_strdup(pare_arena *a, const char *s);
PARE_MUST_USE char *pare_strndup(pare_arena *a, const char *s, size_t n);
PARE_MUST_USE char *pare_sprintf(pare_arena *a, const char *fmt, ...) PARE_PRINTF(2, 3);
/* Everything allocated after the mark is given back by the reset. */
pare_mark pare_arena_mark(const pare_arena *a);
void pare_arena_reset(pare_arena *a, pare_mark m);
/* *out = a * b; false (and *out untouched) on overflow. */
PARE_MUST_USE bool pare_mul(size_t *out, size_t a, size_t b);

/* ---- threads and progress -------------------------------------------------------------------- */

/* How to work: borrowed by every long function; NULL means one thread, silence, and no way to stop.
 */
typedef struct pare_exec {
    int threads; /* >= 1 */
    /* May be NULL. Called from one thread at a time; done <= total. A call of the library reports
     * one range, from 0 to its end, whatever it is made of; `what` names the step it is at. */
    void (*progress)(void *self, const char *what, uint64_t done, uint64_t total);
    void *self;
    /* May be NULL: never stop. Set it to nonzero, from a signal handler, another thread or
     * `progress`, and the call returns PARE_ERR_STOPPED soon afterwards: what it had begun is
     * freed, and files that it was writing are not there. All long work looks at it between blocks
     * of work. It must stay set until the call has returned. A flag that is never set changes no
     * bit of any result. */
    const volatile int *stop;
    /* The fast engine rounds what enters a matrix of packed integers (pare_load_opts in
     * pare/model.h) to integers of 8 bits as well: faster, and less exact. */
    bool int8;
} pare_exec;

/* PARE_OK, or PARE_ERR_STOPPED with its message when x->stop is set: x may be NULL. One read of
 * memory: cheap enough for every row of a matrix, too dear for every element. */
PARE_MUST_USE pare_status pare_stopped(const pare_exec *x, pare_err *err);
/* st; but when it is a failure and x->stop is set, PARE_ERR_STOPPED: work that was given up because
 * of the flag may look like another failure from further away. */
PARE_MUST_USE pare_status pare_or_stopped(const pare_exec *x, pare_status st, pare_err *err);
/* Reports to x->progress, where there is one, and returns pare_stopped: x may be NULL. */
PARE_MUST_USE pare_status pare_progress(const pare_exec *x, const char *what, uint64_t done,
                                        uint64_t total, pare_err *err);
/* Threads and stop flag of x without its progress: for work inside a block of work that is reported
 * as a whole. */
pare_exec pare_exec_silent(const pare_exec *x);

/* Runs fn(ctx, b) for every b < blocks, on x->threads threads in any order. The blocks are chosen
 * by the caller from the sizes alone, never from the thread count: so bits cannot depend on it.
 * Every block is run, whatever the stop flag says: for blocks that are short. */
void pare_parallel(const pare_exec *x, size_t blocks, void (*fn)(void *ctx, size_t block),
                   void *ctx);
/* Cores of this machine that the process may use. */
int pare_cores(void);

/* Work in several steps, each with a progress of its own, reported as one range: for example
 *
 *     pare_steps s = pare_steps_of(exec, 10 + 90);
 *     st = calibrate(..., pare_step(&s, "calibrate", 10), err);
 *     if (!st) st = prove(..., pare_step(&s, "prove", 90), err);
 *
 * The weights are in any unit (seconds, or multiply-adds times a constant): they decide which share
 * of the range a step has, so the time that a bar predicts is as good as they are. */
typedef struct pare_steps {
    const pare_exec *whole; /* NULL: nobody listens */
    pare_exec exec;         /* what pare_step returns */
    const char *what;       /* of this step; NULL: the names that it reports itself */
    double at, span;        /* shares of the range: where this step begins, and its length */
    double now, left;       /* weights: of this step, and of it and all that follow */
    double most;            /* share that was reported last */
} pare_steps;
/* total: the sum of the weights that will follow. Nothing to free; `x` must outlive it, and it must
 * not be moved after the first step. */
pare_steps pare_steps_of(const pare_exec *x, double total);
/* Ends the step before and begins the next: the exec to hand to it, valid until the next call.
 * `what` is reported at once. NULL keeps the names of the step's own reports; otherwise it is
 * shown in their place. */
const pare_exec *pare_step(pare_steps *s, const char *what, double weight);

/* A progress bar with ETA for a terminal; pass pare_bar_show as pare_exec.progress with a
 * pare_bar as self. Draws nothing unless `out` is a terminal. One bar for everything that is
 * reported to it: it never goes back. The time left follows from the work reported since its first
 * report, so that what an earlier process had done does not count as fast. */
typedef struct pare_bar {
    FILE *out;
    bool tty, drawn, begun;
    double start, last;    /* the clock at the first report, at the last drawing */
    double first, part;    /* share that was done at the first report, and now */
    double (*clock)(void); /* pare_seconds, unless a test has set it */
    char note[64];         /* shown behind it: the caller's, may change at any time */
} pare_bar;
void pare_bar_init(pare_bar *bar, FILE *out);
void pare_bar_show(void *self, const char *what, uint64_t done, uint64_t total);
void pare_bar_clear(pare_bar *bar); /* takes the bar off the line */
/* Seconds of a monotonic clock: for times that are printed, never for results. */
double pare_seconds(void);

/* ---- random numbers: Philox4x32-10, a pure function of (seed, stream, position) -------------- */

typedef struct pare_rng {
    uint64_t seed, stream, block;
    uint32_t word[4];
    unsigned used; /* words of `word` already given out */
} pare_rng;

/* A generator at the beginning of a stream: a value, nothing to free. Copies go on alike. */
pare_rng pare_rng_at(uint64_t seed, uint64_t stream);
uint32_t pare_rng_u32(pare_rng *r);               /* the next word */
double pare_rng_uniform(pare_rng *r);             /* [0, 1), 53 bits */
double pare_rng_normal(pare_rng *r);              /* mean 0, variance 1 */
uint64_t pare_rng_below(pare_rng *r, uint64_t n); /* 0 .. n-1 without bias; n > 0 */

/* ---- SHA-256 --------------------------------------------------------------------------------- */

#define PARE_SHA256_HEX 65 /* 64 digits and the end */
/* Of memory, or of a regular file. `hex`: 64 lower-case digits and a zero. PARE_ERR_MEMORY, and
 * PARE_ERR_IO for what pare_blob_open refuses. */
PARE_MUST_USE pare_status pare_sha256_of(char hex[PARE_SHA256_HEX], const void *data, size_t bytes,
                                         pare_err *err);
PARE_MUST_USE pare_status pare_sha256_file(char hex[PARE_SHA256_HEX], const char *path,
                                           pare_err *err);

/* ---- files ----------------------------------------------------------------------------------- */

/* The bytes of a file, read into memory once and counted by reference (by any thread): what happens
 * to the file afterwards does not change them. */
typedef struct pare_blob {
    const uint8_t *data; /* 64-byte aligned */
    size_t bytes;
    char *path; /* as it was opened */
    int refs;
    void *block; /* what is freed: data lies in it */
} pare_blob;
/* One reference, given back with pare_blob_release. Reads regular files only (links are followed):
 * a pipe, a socket, a device or a folder is refused at once and not waited for, and so is a file
 * that becomes longer or shorter while it is read. PARE_ERR_IO names the path. */
PARE_MUST_USE pare_status pare_blob_open(pare_blob **out, const char *path, pare_err *err);
void pare_blob_release(pare_blob *b); /* accepts NULL */

/* A file that appears whole or not at all: written under a temporary name in the same folder,
 * fsync, then renamed. Without pare_out_commit nothing is left behind. */
typedef struct pare_out pare_out;
/* Of the temporary name: the pid, and a number that is free. */
#define PARE_TEMP_SUFFIX ".%ld-%d.tmp"
/* Whether `path` may be written: PARE_ERR_IO for a folder, a device or a pipe (which a rename would
 * replace by a plain file), and for what exists unless `overwrite`. pare_out_open checks it too. */
PARE_MUST_USE pare_status pare_out_check(const char *path, bool overwrite, pare_err *err);
/* Opens, adds bytes or text, and makes the file appear. PARE_ERR_IO names the path; after a failure
 * of a write the file is still the caller's to abort. */
PARE_MUST_USE pare_status pare_out_open(pare_out **out, const char *path, bool overwrite,
                                        pare_err *err);
PARE_MUST_USE pare_status pare_out_write(pare_out *o, const void *data, size_t bytes,
                                         pare_err *err);
PARE_MUST_USE pare_status pare_out_printf(pare_out *o, pare_err *err, const char *fmt, ...)
    PARE_PRINTF(3, 4);
PARE_MUST_USE pare_status pare_out_commit(pare_out *o,
                                          pare_err *err); /* frees o, also on failure */
/* Removes what processes that no longer exist have left of writing `path`: plain files beside it
 * whose names are its own and then .PID-N.tmp, .PID-old.tmp, .part-PID or .part-PID.PID-N.tmp.
 * Every commit does so for the file it has written. What cannot be removed stays. Both return how
 * many were removed. */
size_t pare_out_sweep(const char *path);
/* The same before anything is written: .PID-old.tmp stays, it may be the only copy of something. */
size_t pare_out_sweep_begun(const char *path);
void pare_out_abort(pare_out *o); /* removes the temporary file; accepts NULL */
/* Renames `from` to `to` (in its folder, and down to the disk); what is there is replaced only with
 * `overwrite`. On failure `to` is as it was, unless the message says that the folder could not be
 * synced: then the move has come to pass, but a crash may undo it. */
PARE_MUST_USE pare_status pare_file_move(const char *from, const char *to, bool overwrite,
                                         pare_err *err);
/* Whole small text into an arena, ended by a zero that is not counted; without the byte order mark
 * of UTF-8, if there is one. PARE_ERR_INPUT when it begins with the mark of UTF-16. */
PARE_MUST_USE pare_status pare_text_read(char **out, size_t *bytes, pare_arena *a, const char *path,
                                         pare_err *err);
/* Removes a folder and what is in it, links not followed. What cannot be removed stays. */
void pare_folder_remove(const char *path);
bool pare_file_exists(const char *path); /* a file of any kind, a folder too */
bool pare_is_dir(const char *path);      /* links are followed */
/* `path` as it must be written inside the file `from` so that it is found from its folder:
 * from "out/m.cert.json", "in/m.npz" is "../in/m.npz". And back: "out/../in/m.npz"; an absolute
 * `relative` is kept. NULL when memory is out. */
PARE_MUST_USE char *pare_path_relative(pare_arena *a, const char *from, const char *path);
PARE_MUST_USE char *pare_path_beside(pare_arena *a, const char *file, const char *relative);

/* ---- files read once ------------------------------------------------------------------------- */

/* The files that a loader has read so far, each of them once: who asks for a path again gets the
 * bytes of the first time, whatever has happened to the file. So a hash and a parser, or two
 * parsers, speak of the same bytes. Not for several threads at once. */
typedef struct pare_files pare_files;
PARE_MUST_USE pare_files *pare_files_new(void); /* NULL when memory is out */
/* The same without hashes: faster, for models that will not be certified. */
PARE_MUST_USE pare_files *pare_files_new_unhashed(void);
void pare_files_free(pare_files *f); /* accepts NULL; the bytes stay where they are retained */
/* The bytes of `path`, one reference, given back with pare_blob_release. The first call opens,
 * reads and hashes the file; errors are those of pare_blob_open, and PARE_ERR_IO for a path that
 * was not there when it was asked for first. A file that could not be read is not counted. */
PARE_MUST_USE pare_status pare_files_read(pare_files *f, pare_blob **out, const char *path,
                                          pare_err *err);
/* pare_is_dir, as it was when it was asked first: what is not there decides what a loader does as
 * much as what is. PARE_ERR_MEMORY. */
PARE_MUST_USE pare_status pare_files_is_dir(pare_files *f, bool *out, const char *path,
                                            pare_err *err);

/* ---- arrays: .npy and .npz ------------------------------------------------------------------- */

/* Arrays as they travel: .npy and .npz (stored and deflated, CRC checked). */

typedef enum pare_dtype {
    PARE_BOOL,
    PARE_U8,
    PARE_I8,
    PARE_U16,
    PARE_I16,
    PARE_U32,
    PARE_I32,
    PARE_U64,
    PARE_I64,
    PARE_F16,
    PARE_BF16,
    PARE_F32,
    PARE_F64,
    PARE_TEXT /* fixed-width unicode of numpy ("<U7"): read so that a file with it opens, nothing
                 more */
} pare_dtype;

#define PARE_MAX_DIMS 8
typedef struct pare_array {
    pare_dtype dtype;
    size_t ndim, shape[PARE_MAX_DIMS];
    const void *data; /* row-major, little-endian; borrowed */
} pare_array;

size_t pare_dtype_size(pare_dtype t);         /* bytes of one element; 0 for PARE_TEXT */
const char *pare_dtype_name(pare_dtype t);    /* "F32": the safetensors name */
size_t pare_array_count(const pare_array *a); /* elements: the product of the shape */
/* Element i (row-major) as a number, whatever the dtype (but PARE_TEXT). The integer of a float is
 * cut towards zero; what does not fit is the nearest that does, a nan is 0. */
double pare_array_f64(const pare_array *a, size_t i);
/* "[3, 4]" for messages. */
const char *pare_shape_text(char buf[128], const size_t *shape, size_t ndim);

/* The array lives in `arena`. Fortran order is transposed into row-major, big-endian into
 * little-endian; bf16 travels as '<V2', which numpy keeps as raw bytes; PARE_TEXT has no data. */
PARE_MUST_USE pare_status pare_npy_read(pare_array *out, pare_arena *arena, const char *path,
                                        pare_err *err);
/* Whole or not at all, little-endian. PARE_ERR_IO: what exists and may not be overwritten. */
PARE_MUST_USE pare_status pare_npy_write(const char *path, const pare_array *a, bool overwrite,
                                         pare_err *err);

/* An .npz opened: its members are decoded into `arena` one by one when they are asked for. Closed
 * with pare_npz_close. */
typedef struct pare_npz pare_npz;
PARE_MUST_USE pare_status pare_npz_open(pare_npz **out, pare_arena *arena, const char *path,
                                        pare_err *err);
void pare_npz_close(pare_npz *z); /* accepts NULL; arrays already decoded stay */
bool pare_npz_has(const pare_npz *z, const char *name);
/* PARE_ERR_INPUT naming file and member when it is missing or damaged. */
PARE_MUST_USE pare_status pare_npz_get(pare_array *out, const pare_npz *z, const char *name,
                                       pare_err *err);

/* ---- several processes (MPI) ----------------------------------------------------------------- */

/* Several processes on one task: what MPI is needed for, and nothing of MPI itself.
 *
 * A program that uses this is not linked with MPI: the calls are in libpare-mpi.so, which is built
 * where MPI is installed and loaded by pare_ranks_open alone. NULL is a valid pare_ranks: one
 * process. Calls come from the thread that opened it, in the same order in every process. */

typedef struct pare_ranks pare_ranks;

/* Environment variables, NULL at the end: a program that finds one of them was started by an mpirun
 * and should call pare_ranks_open. (The library does not read the environment.) */
extern const char *const pare_ranks_signs[];

/* Joins the processes that mpirun started. PARE_ERR_IO when libpare-mpi.so or MPI is not there: a
 * process that went on alone would do everything once more, and write the same files. Closed with
 * pare_ranks_close. */
PARE_MUST_USE pare_status pare_ranks_open(pare_ranks **out, pare_err *err);
void pare_ranks_close(pare_ranks *r); /* every process, also after a failure; accepts NULL */

size_t pare_ranks_size(const pare_ranks *r); /* processes; 1 for NULL */
size_t pare_ranks_rank(const pare_ranks *r); /* 0 .. size - 1 */

/* all: size x bytes, the parts in the order of the ranks; every rank has them afterwards. */
PARE_MUST_USE pare_status pare_ranks_gather(const pare_ranks *r, void *all, const void *mine,
                                            size_t bytes, pare_err *err);
/* Every rank comes here with how it fared; the first failure by number becomes that of all, words
 * included, so that nobody waits for one who has left. */
PARE_MUST_USE pare_status pare_ranks_agree(const pare_ranks *r, pare_status mine, pare_err *err);
#endif
