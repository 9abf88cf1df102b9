/* shared_rows.h - tokens that share one row of the embedding (pare_embedding.rows). */
#ifndef PARE_MODEL_SHARED_ROWS_H
#define PARE_MODEL_SHARED_ROWS_H
#include <pare/model.h>

#define PARE_SHARED_TENSOR "embedding.shared" /* in files: a bit for each token that shares */

/* The row of the table that a token has. */
static inline size_t pare_token_row(const pare_embedding *s, int64_t id)
{
    return s->rows ? s->rows[id] : (size_t)id;
}

/* The row of the last map that each output is made by, where a tied head shares rows; else NULL. */
static inline const uint32_t *pare_output_map(const pare_model *m)
{
    return m->head.tied ? m->embedding.rows : NULL;
}

static inline bool pare_token_shares(const pare_embedding *s, size_t id)
{
    return s->rows && s->rows[id] + 1 == s->table.rows;
}

/* How many tokens share the last row. */
static inline size_t pare_shared_tokens(const pare_embedding *s)
{
    return s->rows ? s->vocab + 1 - s->table.rows : 0;
}

/* Bit id % 8 of byte id / 8 is set where a token shares; the other bits are 0. */
static inline size_t pare_shared_bytes(const pare_embedding *s)
{
    return s->vocab / 8 + (s->vocab % 8 != 0);
}
/* NULL: memory is out. */
uint8_t *pare_shared_bits(pare_arena *a, const pare_embedding *s);
/* The rows that such bits mean, of a table of `table_rows` rows. PARE_ERR_INPUT where they do not fit. */
PARE_MUST_USE pare_status pare_shared_rows_read(const uint32_t **out, pare_arena *a,
                                                const uint8_t *bits, size_t bytes, size_t vocab,
                                                size_t table_rows, pare_err *err);

/* Gives every token a row of its own again, in the model's arena: the same function. */
PARE_MUST_USE pare_status pare_model_expand_rows(pare_model *m, pare_err *err);
/* Lets the tokens that share in `like` share in m, where their rows in m are one vector to the bit;
 * otherwise m stays as it is. */
PARE_MUST_USE pare_status pare_model_share_like(pare_model *m, const pare_model *like, pare_err *err);
/* Gives the tokens that `shares` says the row `row` (of the type of the table). At least two. */
PARE_MUST_USE pare_status pare_model_share(pare_model *m, const bool *shares, const void *row,
                                           pare_err *err);
#endif
