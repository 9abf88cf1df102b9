/* pare/quant.h - weights in few bits (docs/quant.md): integers of 2 to 8 bits, with a scale for every
 * group of them, or a path of 1.5 to 6 bits a weight through a table of random numbers (a ticket). pare_reduce makes such a model from file to file (pare/cut.h):
 *
 *   pare_reduce_opts o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_QUANT);
 *   o.from = "model.safetensors", o.to = "small.safetensors", o.data = "text.txt";
 *   o.quant.bits = 4;
 *   st = pare_reduce(&r, arena, model, &o, NULL, &err);
 *
 * Every matrix is quantized; biases, gains and the parameters of norms stay numbers. */
#ifndef PARE_QUANT_H
#define PARE_QUANT_H
#include <pare/cert.h>

typedef enum pare_quant_method {
    PARE_QUANT_RTN,  /* round to nearest; each group's scale has the least weighted square error */
    PARE_QUANT_GPTQ, /* one input after the other; the weights that are still open make good for the
                       errors so far (Frantar et al. 2023) */
    PARE_QUANT_TRELLIS, /* the cheapest path through a random table, in rotated coordinates, with the
                           same feedback: seed and path are stored (docs/theory/ticket.md) */
    PARE_QUANT_SEEDLM /* for comparison: each block of weights as a combination of the columns that
                         the best seed of a shift register makes (Shafipour et al. 2024); no data */
} pare_quant_method;
extern const char *const pare_quant_method_names[]; /* ended by NULL */

typedef struct pare_quant_opts {
    pare_quant_method method;
    double
        bits; /* 2 to 8, whole ones; SEEDLM: 2 to 6; TRELLIS: 1.5 to 6 in eighths; with max_bytes: at
                 most; 0: the most there are */
    double embedding_bits;  /* of embeddings, positions and output heads; 0: as `bits` */
    size_t group;           /* weights of a row that share a scale; 0: the whole row; RTN, GPTQ */
    bool affine;            /* an offset for every group as well; RTN, GPTQ */
    size_t max_bytes;       /* of the file: bits are allocated to the matrices; 0: `bits` for all */
    pare_dtype dtype;       /* of weights that stay numbers; 0: as in the input */
    uint64_t seed;          /* TRELLIS: of the random tables */
    size_t state_bits;      /* TRELLIS: 2^11 to 2^16 states; one more takes twice the time; 0: 15 */
    const pare_inputs *fit; /* whose rows weight the errors; NULL: all errors weigh the same */
} pare_quant_opts;
#define PARE_QUANT_OPTS_DEFAULT                                                                    \
    {                                                                                              \
        .method = PARE_QUANT_GPTQ, .bits = 8, .group = 32                                          \
    }
enum { PARE_QUANT_LEAST_BITS = 2, PARE_QUANT_MOST_BITS = 8 };
#define PARE_QUANT_LEAST_PATH 1.5 /* bits a weight of TRELLIS */
#define PARE_QUANT_MOST_PATH  6.0
enum { PARE_QUANT_LEAST_STATE = 11, PARE_QUANT_MOST_STATE = 16 }; /* bits of a state of TRELLIS */
#define PARE_QUANT_MOST_SEEDS 6                                   /* bits a weight of SEEDLM */

typedef struct pare_quant_matrix {
    const char *name;
    size_t rows, cols;
    size_t
        group; /* weights that share a scale, of SEEDLM a seed; 0: TRELLIS has one scale for all, or
                     for each row */
    double bits;
    bool affine, measured; /* measured: errors are weighted by the inputs of the matrix */
    size_t bytes;          /* in the file */
    double error;          /* relative: |E|_F / |W|_F */
    double output_error;   /* |E x| / |W x| over the rows x that enter it; measured only */
} pare_quant_matrix;

typedef struct pare_quant_report {
    size_t n;
    pare_quant_matrix *matrix; /* those that were quantized */
    uint64_t weights, bytes;   /* of these */
    uint64_t numbers;          /* weights that stayed numbers */
    uint64_t number_bytes;
} pare_quant_report;

/* How it is proven, and proven again by pare_verify_file. */
extern const pare_prover pare_quant_prover;
#endif
