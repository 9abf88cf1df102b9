/* ticket_codec.h - what the kinds of coded weights (a seed and masks, or groups of integers) share:
 * the frame around their bodies, and bits.
 *
 *   ticket_codec.c        frame, table of kinds
 *   ticket_factored.c     two masked random matrices, multiplied, with a ReLU between them or not;
 *                         ticket_factored_write.c
 *   ticket_units.c        which of its hidden units serves which column
 *   ticket_mask_coder.c   its arithmetic coder; ticket_mask_choice.c: masks that cost few bits
 *   ticket_identity.c     identities
 *   ticket_popup.c        a masked random matrix (edge-popup)
 *   ticket_trellis.c      a path through a random table; trellis_table.c
 *   coded_groups.c        integers, and a scale for every group of them
 *   coded_seeds.c         combinations of pseudorandom columns (seeds.h)
 *   range_coder.c         the range coder of both coders
 *
 * A new kind has a number in pare_coded_kind, an expander in the table of ticket_codec.c, and a
 * writer that ends with ticket_frame. */
#ifndef PARE_MODEL_TICKET_CODEC_H
#define PARE_MODEL_TICKET_CODEC_H
#include "ticket_store.h"

/* Little-endian:
 *    0  "PARETKT1"      8  u32 kind       12  u32 flags      16  u64 seed     24  u64 stream
 *   32  u32 rows       36  u32 cols       40  u32 n          44  i32 exponent
 *   48  body           end - 4  u32 crc32 of all before */
enum { TICKET_HEADER_BYTES = 48, TICKET_CHECKSUM_BYTES = 4 };
#define TICKET_MAX_ENTRIES (UINT64_C(1) << 40) /* entries */

typedef struct ticket_body {
    const uint8_t *data;
    size_t bytes;
} ticket_body;

/* rows x cols numbers in `a`, made by ticket_new_weight only after the body was found to be large
 * enough for them: a few bytes must not ask for all memory. */
typedef pare_status ticket_expand_fn(float **out, pare_arena *a, const pare_coded_head *h,
                                     const ticket_body *body, pare_arena *scratch, pare_err *err);
ticket_expand_fn ticket_expand_factored, ticket_expand_identity, ticket_expand_popup,
    ticket_expand_trellis, coded_expand_groups, coded_expand_seeds;
/* What the first TICKET_HEADER_BYTES say. */
pare_coded_head ticket_head(const uint8_t *data);
PARE_MUST_USE pare_status ticket_new_weight(float **out, pare_arena *a, const pare_coded_head *h,
                                            pare_err *err);

/* Header, body and checksum in one piece; name is left to the caller. */
PARE_MUST_USE pare_status ticket_frame(pare_coded *out, pare_arena *a, const pare_coded_head *h,
                                       const ticket_body *body, pare_err *err);

void put_u32(uint8_t *to, uint32_t v);
void put_u64(uint8_t *to, uint64_t v);
uint32_t get_u32(const uint8_t *from);
uint64_t get_u64(const uint8_t *from);

/* Bits, lowest first. Reading beyond the end gives zeros and sets `over`. */
typedef struct bit_reader {
    const uint8_t *data;
    size_t bits, at;
    bool over;
} bit_reader;
uint64_t bits_get(bit_reader *r, unsigned count); /* count <= 57 */
typedef struct bit_writer {
    uint8_t *data; /* zeros, long enough */
    size_t at;
} bit_writer;
void bits_put(bit_writer *w, uint64_t v, unsigned count); /* count <= 57 */
#endif
