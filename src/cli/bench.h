/* bench.h - what `pare bench` is made of: kinds of work, cases of a kind, and peers that do the
 * same work in processes of their own. */
#ifndef PARE_CLI_BENCH_H
#define PARE_CLI_BENCH_H
#include "cli.h"

#define BENCH_SHAPE   96
#define BENCH_SAMPLES 640

/* ---- one case ------------------------------------------------------------------------------ */

typedef enum bench_unit { BENCH_MS, BENCH_GFLOPS, BENCH_TOKENS, BENCH_GBYTES } bench_unit;
/* --quick runs the first only, --full the second and the third. */
typedef enum bench_level { BENCH_QUICK, BENCH_SHORT, BENCH_FULL } bench_level;

typedef struct bench_job { /* a case being run */
    cli *c;
    pare_arena *arena; /* of this case alone */
    const char *dir;   /* a folder of its own: what peers read goes there */
    const char *graph; /* file of --graph; NULL without */
    bool peers;        /* there are some: write the inputs */
    pare_exec exec;    /* threads of the run at hand, silent */

    char shape[BENCH_SHAPE];
    double flops, amount; /* of one run, 0: not counted; amount: tokens or bytes */
    const float *result;  /* what peers must agree with; NULL: no peer can do this */
    size_t nresult;
    double tolerance; /* relative to the largest entry */
    void *state;
} bench_job;

/* A kind of work, step by step. */
typedef struct bench_kind {
    pare_status (*input)(bench_job *j, const size_t *p); /* makes the inputs from the numbers p */
    pare_status (*reference)(bench_job *j); /* the f64 answer; NULL: `input` or `check` has it */
    pare_status (*threads)(bench_job *j);   /* prepares for j->exec; NULL: nothing depends on it */
    pare_status (*run)(bench_job *j);       /* what is timed */
    /* The largest error of the result, relative to the largest entry of the answer. */
    pare_status (*check)(bench_job *j, double *error);
    void (*free)(bench_job *j); /* NULL: everything is in the arena */
} bench_kind;

typedef struct bench_case {
    const char *name; /* what NAME on the command line chooses */
    const bench_kind *kind;
    bench_level level;
    bench_unit unit;
    bool one_thread; /* does not use more */
    size_t p[5];
} bench_case;

extern const bench_case bench_cases[];
extern const size_t bench_ncases;
extern const bench_kind bench_attention, bench_dense, bench_hash, bench_spectral; /* kernels */
extern const bench_kind bench_board, bench_file, bench_web, bench_gpt;            /* models */
extern const bench_kind bench_board_step, bench_file_step, bench_web_step;        /* training */
extern const bench_kind bench_gpt_step;
/* Only where the library can decode. */
#if defined __has_include
#if __has_include(<pare/run.h>)
#define BENCH_HAS_DECODER 1
#endif
#endif
#ifdef BENCH_HAS_DECODER
extern const bench_kind bench_generate;
#endif

/* The state of a forward pass, which a training step is made of as well. */
typedef struct bench_pass {
    pare_model *m;
    pare_input in;
    pare_graph_data board;
    size_t count; /* of outputs */
    double *exact;
    float *out;
    struct bench_step *step; /* training only */
} bench_pass;
/* bench_kind.input of a pass: model, input, files for the peers. */
pare_status bench_board_input(bench_job *j, const size_t *p);
pare_status bench_file_input(bench_job *j, const size_t *p);
pare_status bench_web_input(bench_job *j, const size_t *p);
pare_status bench_gpt_input(bench_job *j, const size_t *p);

/* ---- what kinds share ----------------------------------------------------------------------- */

void *bench_alloc(bench_job *j, size_t count, size_t size); /* NULL: c->err says so */
/* count normal numbers of stream s of the command's seed. */
float *bench_normal(bench_job *j, size_t count, uint64_t stream);
/* Writes an array for the peers as NAME.npy. */
pare_status bench_give_array(bench_job *j, const char *name, pare_dtype t, size_t rows, size_t cols,
                             const void *data);
/* Writes case.json for the peers: the text of a JSON object that says what the arrays mean. */
pare_status bench_give_case(bench_job *j, const char *fmt, ...) PARE_PRINTF(2, 3);
char *bench_path(bench_job *j, const char *name); /* in the folder; NULL: c->err says so */
/* Largest |got - want| over the largest |want|. nan when anything is. */
double bench_distance(const float *got, const double *want, size_t n);

/* ---- peers ---------------------------------------------------------------------------------- */

/* A program that answers lines (docs/bench.md): once started it serves all cases. */
typedef struct bench_peer {
    char name[64];
    int fd; /* of both directions; -1: gone */
    int pid;
    char line[8192];
    size_t have; /* bytes of `line` read already */
} bench_peer;

/* cpu: it is told to measure CPU time. */
pare_status bench_peer_start(bench_peer *p, const char *command, bool cpu, pare_err *err);
/* *can false: the peer does not do this; `label`: its name with the variant it chose. */
pare_status bench_peer_load(bench_peer *p, const bench_job *j, bool *can, char label[64],
                            pare_err *err);
/* n runs; seconds of each. */
pare_status bench_peer_run(bench_peer *p, size_t n, double *seconds, pare_err *err);
/* PARE_ERR_VERIFY when its result is not ours. */
pare_status bench_peer_compare(bench_peer *p, bench_job *j, pare_err *err);
void bench_peer_stop(bench_peer *p);

/* ---- the machine ---------------------------------------------------------------------------- */

typedef struct bench_machine {
    const char *version;
    char commit[64], compiler[64], cpu[96], date[32];
    int cores;
} bench_machine;
void bench_machine_read(bench_machine *m);

/* Plain sgemm, the yardstick: `threads` products of side n at once, each checked. */
typedef struct bench_gemm {
    size_t n;
    float *a, *b;
    float *c; /* one product for each thread */
} bench_gemm;
pare_status bench_gemm_init(bench_gemm *g, cli *c, size_t n);
pare_status bench_gemm_run(bench_gemm *g, const pare_exec *exec, bool cpu, double *gflops,
                           pare_err *err);
/* Seconds of a clock; cpu: CPU time of this process, which is the fairer measure on a machine that
 * others use too, but only for work on one thread: a thread that waits uses no CPU time. */
double bench_seconds(bool cpu);

/* ---- measuring ------------------------------------------------------------------------------- */

#define BENCH_MOST_PEERS 4

typedef struct bench_samples {
    double t[BENCH_SAMPLES]; /* seconds */
    size_t n;
} bench_samples;
double bench_best(bench_samples *s); /* both sort; n > 0 */
double bench_median(bench_samples *s);

typedef struct bench_opponent {
    bench_peer *peer;
    char label[64];
    double first; /* seconds of the run that is not counted */
    bench_samples took;
} bench_opponent;

typedef struct bench_match { /* one case on some threads: all who can do it */
    cli *c;
    bench_peer *peers;
    size_t npeers;
    size_t lost;   /* peers that broke */
    size_t turns;  /* at most, and two at least */
    double budget; /* seconds, after which there are no more turns */
    bool cpu;
    bench_gemm gemm;

    bench_samples ours, sgemm; /* sgemm: seconds per Gflop */
    bench_opponent against[BENCH_MOST_PEERS];
    size_t nagainst;
    double error; /* of our result */
} bench_match;
/* From here on a signal ends a measurement at the next turn (PARE_ERR_IO), so that the temporary
 * files can be removed; the next signal ends the process. */
void bench_catch_signals(void);
int bench_signalled(void); /* which; 0: none */
/* PARE_ERR_VERIFY when a result is wrong, of the first run or of the last, ours or a peer's. */
pare_status bench_measure(bench_match *m, bench_job *j, const bench_case *k);
#endif
