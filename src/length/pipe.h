/* pipe.h - what goes over the pipe, as docs/pipe.md says it. All numbers are little-endian, as the
 * machines are that this runs on. */
#ifndef PARE_LENGTH_PIPE_H
#define PARE_LENGTH_PIPE_H
#include <pare/base.h>
#include <stdint.h>

enum { PIPE_MAGIC = 0x45524150 }; /* "PARE" */

typedef enum pipe_kind {
    PIPE_HELLO = 1, /* to the program, first */
    PIPE_CAPS,      /* its answer */
    PIPE_CALLS,     /* to the program */
    PIPE_RESULTS,   /* its answer */
    PIPE_FAILED     /* or this one: u64 the call in the frame, then words */
} pipe_kind;

typedef struct pipe_frame {
    uint32_t magic, kind;
    uint64_t bytes; /* of what follows */
} pipe_frame;

typedef struct pipe_hello {
    uint32_t version, length, number_bytes, dk, dv, zero[3];
} pipe_hello;

typedef struct pipe_caps {
    uint32_t version, features, max_len, dk, dv, batch, number_bytes, zero;
    double exp_flush, exp_err, w_min;
} pipe_caps;

typedef struct pipe_calls { /* also the head of results */
    uint32_t count, zero;
} pipe_calls;

enum { PIPE_PARTIAL = 0, PIPE_QKV = 1, PIPE_CAUSAL = 1, PIPE_BIAS = 2 };
typedef struct pipe_call { /* then q, k, v, and the bias where there is one */
    uint32_t kind, nq, nk, dk, dv, flags;
    int64_t vis0;
} pipe_call;

typedef struct pipe_result { /* then m and l of a partial call, then the rows */
    uint32_t rows, cols;
} pipe_result;

_Static_assert(sizeof(pipe_frame) == 16 && sizeof(pipe_hello) == 32 && sizeof(pipe_caps) == 56 &&
                   sizeof(pipe_calls) == 8 && sizeof(pipe_call) == 32 && sizeof(pipe_result) == 8,
               "the layout of docs/pipe.md");
#endif
