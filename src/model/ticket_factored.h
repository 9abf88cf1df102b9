/* ticket_factored.h - the parts of a factored ticket: body, units, mask coder. */
#ifndef PARE_MODEL_TICKET_FACTORED_H
#define PARE_MODEL_TICKET_FACTORED_H
#include "ticket_codec.h"
#include "range_coder.h"

/* ---- the body ---- */

enum {
    FACTORED_TRANSPOSED = 1, /* flags: the body is about the transpose, ... */
    FACTORED_CODED = 2,      /* ... its masks are coded, ... */
    FACTORED_RANKED = 4,     /* ... with a prior for each rank; ... */
    FACTORED_SIGNS = 8       /* ... a ReLU source has two columns for each input */
};
enum { FACTORED_PREFIX_BYTES = 12 /* bytes */, FACTORED_PRIOR_BITS = 8 };

/* ---- which hidden units serve which column (ticket_units.c) ---------------------------------- */

typedef struct unit_layout {
    uint64_t seed, stream;
    size_t a, b, n; /* A is a x n, B n x b */
    size_t inputs;  /* of a ReLU source: b or b / 2; 0: there is no ReLU */
    uint32_t donor;
    size_t donated;  /* units of the donor column */
    size_t *first;   /* b + 1: the units of column j are unit[first[j]] .. unit[first[j + 1] - 1] */
    uint32_t *unit;  /* ascending in a column */
    int32_t *weight; /* B of that unit in that column */
} unit_layout;

unsigned unit_column_bits(size_t b); /* of a unit's column, or of none */
/* The lists, and what units weigh, from own (n; PARE_NO_COLUMN: pruned). */
PARE_MUST_USE pare_status unit_layout_init(unit_layout *d, pare_arena *a, const uint32_t *own,
                                           pare_err *err);
PARE_MUST_USE pare_status unit_layout_check(const unit_layout *d, pare_err *err);
/* The products of column j in a row of A. */
void unit_layout_items(int64_t *x, const unit_layout *d, const int32_t *row, size_t j);

/* ---- arithmetic coding of an entry's bits (ticket_mask_coder.c) ------------------------------ */

enum {
    CODER_UNITS = PARE_BRIDGE_UNITS,
    CODER_MAX_WIDTH = 1 << 24,
    PROBABILITY_BITS = 12, /* of a probability */
    LOG_ODDS_STEPS = 16    /* steps of log odds for 1 */
};

/* What the sums are expected to be: their root mean square, in 2^-16. */
uint32_t mask_coder_width(double mean_square);
/* Can so many bytes hold so many mask bits at all? */
bool mask_bytes_suffice(size_t bytes, uint64_t bits);
float power_of_two(int exponent); /* 2^exponent, -112 .. 16 */

/* The items of an entry as the coder sees them. */
typedef struct mask_entry {
    size_t count;
    uint8_t order[CODER_UNITS];                              /* largest first */
    int64_t item[CODER_UNITS];                               /* in that order, in 2^-16 */
    int64_t rest[CODER_UNITS + 1], squares[CODER_UNITS + 1]; /* of items k and later */
} mask_entry;
void mask_entry_init(mask_entry *e, const int64_t *item, size_t count);
/* Of 2^PROBABILITY_BITS, that item k is chosen where those before it add up to `sum`. */
uint32_t mask_probability(const mask_entry *e, size_t k, int64_t sum, const pare_bridge *b);

typedef struct mask_encoder {
    range_encoder out;
    pare_bridge model;
} mask_encoder;
void mask_encode_open(mask_encoder *e, uint8_t *to, size_t capacity, const pare_bridge *model);
void mask_encode(mask_encoder *e, const uint8_t *bit, const int64_t *item, size_t count);
size_t mask_encode_close(mask_encoder *e); /* bytes that were needed */

typedef struct mask_decoder {
    range_decoder in;
    pare_bridge model;
} mask_decoder;
void mask_decode_open(mask_decoder *d, const uint8_t *from, size_t bytes, const pare_bridge *model);
void mask_decode(mask_decoder *d, uint8_t *bit, const int64_t *item, size_t count);
bool mask_decode_closed(const mask_decoder *d); /* all bytes were used, and no more */
#endif
