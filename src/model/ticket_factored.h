/* ticket_factored.h - the parts of a factored ticket. */
#ifndef PARE_MODEL_TICKET_FACTORED_H
#define PARE_MODEL_TICKET_FACTORED_H
#include "ticket_codec.h"
#include "range_coder.h"

/* ---- the body ---- */

enum {
    FACTORED_TURNED = 1, /* flags: the body is about the transpose, ... */
    FACTORED_BRIDGE = 2, /* ... its masks are coded, ... */
    FACTORED_RANKED = 4, /* ... with a prior for each rank; ... */
    FACTORED_SIGNS = 8   /* ... a ReLU source has two columns for each input */
};
enum { FACTORED_FRONT = 12 /* bytes */, FACTORED_PRIOR_BITS = 8 };

/* ---- which hidden units serve which column (ticket_units.c) ------------------------------------ */

typedef struct deal {
    uint64_t seed, stream;
    size_t a, b, n;
    size_t inputs; /* of a ReLU source: b or b / 2; 0: there is no ReLU */
    uint32_t donor;
    size_t given;    /* units of the donor column */
    size_t *first;   /* b + 1: the units of column j are unit[first[j]] .. unit[first[j + 1] - 1] */
    uint32_t *unit;  /* ascending in a column */
    int32_t *weight; /* B of that unit in that column */
} deal;

unsigned deal_own_bits(size_t b); /* of a unit's column, or of none */
/* The lists, and what units weigh, from own (n; PARE_NO_COLUMN: pruned). */
PARE_MUST_USE pare_status deal_list(deal *d, pare_arena *a, const uint32_t *own, pare_err *err);
PARE_MUST_USE pare_status deal_check(const deal *d, pare_err *err);
/* The products of column j in a row of A. */
void deal_items(int64_t *x, const deal *d, const int32_t *row, size_t j);

/* ---- arithmetic coding of an entry's bits (ticket_mask_coder.c) ----------------------------------- */

enum {
    BRIDGE_UNITS = PARE_BRIDGE_UNITS,
    BRIDGE_WIDEST = 1 << 24,
    BRIDGE_BITS = 12, /* of a chance */
    BRIDGE_ODDS = 16  /* steps of log odds for 1 */
};

/* What the sums are expected to be: their root mean square, in 2^-16. */
uint32_t bridge_width(double mean_square);
/* Whether so many bytes can stand for so many bits at all. */
bool bridge_may_hold(size_t bytes, uint64_t bits);
float bridge_power(int exponent); /* 2^exponent, -112 .. 16 */

/* The items of an entry as the coder sees them. */
typedef struct bridge_entry {
    size_t count;
    uint8_t order[BRIDGE_UNITS];                               /* largest first */
    int64_t item[BRIDGE_UNITS];                                /* in that order, in 2^-16 */
    int64_t rest[BRIDGE_UNITS + 1], squares[BRIDGE_UNITS + 1]; /* of items k and later */
} bridge_entry;
void bridge_entry_open(bridge_entry *e, const int64_t *item, size_t count);
/* Of 2^BRIDGE_BITS, that item k is chosen where those before it add up to `sum`. */
uint32_t bridge_chance(const bridge_entry *e, size_t k, int64_t sum, const pare_bridge *b);

typedef struct bridge_encoder {
    range_encoder out;
    pare_bridge model;
} bridge_encoder;
void bridge_encode_open(bridge_encoder *e, uint8_t *to, size_t room, const pare_bridge *model);
void bridge_encode(bridge_encoder *e, const uint8_t *bit, const int64_t *item, size_t count);
size_t bridge_encode_close(bridge_encoder *e); /* bytes that were needed */

typedef struct bridge_decoder {
    range_decoder in;
    pare_bridge model;
} bridge_decoder;
void bridge_decode_open(bridge_decoder *d, const uint8_t *from, size_t bytes,
                        const pare_bridge *model);
void bridge_decode(bridge_decoder *d, uint8_t *bit, const int64_t *item, size_t count);
bool bridge_decode_closed(const bridge_decoder *d); /* all bytes were used, and no more */
#endif
