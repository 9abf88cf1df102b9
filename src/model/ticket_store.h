/* ticket_store.h - weights that a file holds in fewer bytes than their numbers take: a seed and
 * masks, or groups of integers with their scales.
 *
 * The tensor NAME.ticket or NAME.quant (U8) stands for the weight NAME. Loading expands it: the same
 * bits on any machine. docs/format.md says how for strangers; docs/ticket.md what tickets are,
 * docs/quant.md what groups of integers are for. */
#ifndef PARE_MODEL_TICKET_STORE_H
#define PARE_MODEL_TICKET_STORE_H
#include <pare/model.h>

/* A ReLU source, A relu(B x): a unit reads one input, and which sign of it is passed on is that of
 * its weight. SIGNS: columns 0 .. d - 1 of W multiply x+, columns d .. 2 d - 1 multiply x-, where
 * x = x+ - x- are d inputs; POSITIVE: no input is negative, W multiplies x. The entries of B are
 * n x d, and count as |B| in the columns of their sign; there is no donor. */
typedef enum pare_relu_source {
    PARE_RELU_NONE,
    PARE_RELU_SIGNS,
    PARE_RELU_POSITIVE
} pare_relu_source;

typedef enum pare_coded_kind {
    PARE_CODED_FACTORED = 1, /* two masked random matrices, multiplied */
    PARE_CODED_IDENTITY = 2, /* identities side by side, or one above its negative */
    PARE_CODED_POPUP = 3,    /* a masked random matrix */
    PARE_CODED_RELU = 4,     /* two masked random matrices with a ReLU between them */
    PARE_CODED_GROUPS = 5,   /* integers, and a scale for every group of them: no seed */
    PARE_CODED_TRELLIS = 6,  /* a path through a random table, rotated (trellis.h) */
    PARE_CODED_SEEDS = 7     /* a seed and coefficients for every block of weights (seeds.h) */
} pare_coded_kind;

/* What follows the weight's name in the name of its tensor; ended by NULL. */
extern const char *const pare_coded_suffixes[];
/* That of these bytes, which a writer below has made. */
const char *pare_coded_suffix(const pare_coded *c);

/* What every kind says at its beginning. */
typedef struct pare_coded_head {
    pare_coded_kind kind;
    uint32_t flags; /* of the kind */
    uint64_t seed, stream;
    size_t rows, cols; /* of the weight */
    size_t n;          /* hidden units, or what the kind makes of it: of GROUPS the group */
    int exponent;      /* the scale is 2^exponent */
} pare_coded_head;

/* A byte of a ticket stands for so many entries at most: no mask can be coded more tightly. */
#define PARE_CODED_PER_BYTE 2048
/* The weight, f32, in the arena. PARE_ERR_INPUT says what is wrong with the bytes: a version or
 * kind that is not known, a checksum, a length, a size. Masks bound the size of a weight;
 * identities have none: `most` is how many entries they may have, PARE_CODED_PER_BYTE for each byte
 * of the file that they lie in, or SIZE_MAX for what was made in this process. `head` may be NULL.
 */
PARE_MUST_USE pare_status pare_coded_expand(pare_weight *out, pare_coded_head *head, pare_arena *a,
                                            const uint8_t *data, size_t bytes, size_t most,
                                            pare_err *err);

/* ---- rows of bits ---------------------------------------------------------------------------- */

typedef struct pare_bits {
    size_t rows, cols, words; /* words of a row */
    uint64_t *v;
} pare_bits;
pare_bits pare_bits_new(pare_arena *a, size_t rows, size_t cols); /* zeros; v NULL: no memory */
/* Bit k of row i: read, and set to 1. */
static inline bool pare_bit(const pare_bits *m, size_t i, size_t k)
{
    return m->v[i * m->words + k / 64] >> (k % 64) & 1;
}
static inline void pare_bit_set(pare_bits *m, size_t i, size_t k)
{
    m->v[i * m->words + k / 64] |= (uint64_t)1 << (k % 64);
}

/* ---- factored -------------------------------------------------------------------------------- */

/* What the arithmetic coder of the masks expects: sums of about this size, and how likely the
 * largest item of an entry is chosen, the second largest, and so on. */
enum { PARE_BRIDGE_UNITS = 64 };
typedef struct pare_bridge {
    uint32_t width; /* root mean square of an entry's sum, in 2^-16; 1 .. 2^24 */
    size_t ranks;   /* 0: all items as likely as not; else at least as many as an entry has items */
    int8_t prior[PARE_BRIDGE_UNITS]; /* log odds in 1/16 */
} pare_bridge;

/* W (or W^T where `transposed`) = 2^exponent (A o MA)(B o MB), a x n and n x b. A are the weights
 * of `stream`, B those of `stream` + 1. Unit k serves column own[k] alone, but those of the donor
 * column may also give to others. */
typedef struct pare_factored {
    uint64_t seed, stream;
    size_t rows, cols, n;
    bool transposed;
    pare_relu_source relu;
    int exponent;
    const uint32_t *own; /* n; PARE_NO_COLUMN: pruned */
    uint32_t donor;      /* a column, or PARE_NO_COLUMN */
    pare_bits ma, mb;    /* a x n, n x b */
    pare_bridge bridge;  /* of the coder; width 0: as the masks are */
} pare_factored;
#define PARE_NO_COLUMN UINT32_MAX

/* The bytes of such a ticket, in the arena, by the smaller of the codings that are allowed: RAW, or
 * `coding` where that is shorter. */
PARE_MUST_USE pare_status pare_coded_factored(pare_coded *out, pare_arena *a,
                                              const pare_factored *f, pare_coding coding,
                                              pare_err *err);
/* Of `count` (up to 64) items in 2^-48 those with the least (sum - target)^2 + price bits, where
 * `bits` is what the coder takes for them. The smaller the price, the longer the search. */
typedef struct pare_chosen {
    uint64_t mask; /* bit u: item u */
    double bits;
} pare_chosen;
pare_chosen pare_bridge_choose(const int64_t *item, size_t count, double target, double price,
                               const pare_bridge *b);
/* What a coder learns from masks: how much more often a rank was chosen than expected, and how sure
 * that was. */
typedef struct pare_bridge_counts {
    double more[PARE_BRIDGE_UNITS], unsure[PARE_BRIDGE_UNITS];
} pare_bridge_counts;
void pare_bridge_statistics(pare_bridge_counts *s, const int64_t *item, size_t count, uint64_t mask,
                            const pare_bridge *b);
void pare_bridge_learn(pare_bridge *b, const pare_bridge_counts *s); /* one step */
/* cols = k rows: identities side by side; rows = 2 cols: an identity above its negative. */
PARE_MUST_USE pare_status pare_coded_identity(pare_coded *out, pare_arena *a, size_t rows,
                                              size_t cols, pare_err *err);

/* ---- groups of integers ---------------------------------------------------------------------- */

/* The bytes of a quantized matrix (pare/linalg.h) of 2 to 8 bits; `of` is not read. Without offsets
 * -2^(bits-1) <= q < 2^(bits-1); with them the same at 8 bits, and 0 <= q < 2^bits below. Scales and
 * offsets are stored as f16 where all of them are f16 numbers, else as f32. */
PARE_MUST_USE pare_status pare_coded_groups(pare_coded *out, pare_arena *a,
                                            const pare_int_groups *g, pare_err *err);
/* How many bytes that takes. */
uint64_t pare_coded_groups_bytes(size_t rows, size_t cols, size_t group, unsigned bits, bool affine,
                                 bool f32_scales);
/* Least and largest q. */
int pare_int_groups_least(unsigned bits, bool affine);
int pare_int_groups_most(unsigned bits, bool affine);
/* Its numbers, rows x cols. */
void pare_int_groups_expand(float *out, const pare_int_groups *g);
/* The integers, in the arena, of bytes of this kind that pare_coded_expand has taken. */
PARE_MUST_USE pare_status pare_coded_integers(pare_int_groups *out, pare_arena *a,
                                              const uint8_t *data, size_t bytes, pare_err *err);

/* ---- a masked random matrix ------------------------------------------------------------------ */

/* w (f32): frozen weights where the mask is 1, +0 elsewhere. PARE_ERR_VERIFY names an entry that is
 * neither. */
PARE_MUST_USE pare_status pare_coded_popup(pare_coded *out, pare_arena *a, const pare_frozen *f,
                                           const pare_weight *w, pare_err *err);
#endif
