/* pare/decode.h - one token after the other: a language model that remembers what it has read.
 *
 *     pare_decoder_new(&d, model, 0, &exec, &err);
 *     pare_decoder_feed(d, ids, n, &logits, &err);    the prompt
 *     pare_decoder_step(d, id, &logits, &err);        what was chosen, again and again
 *
 * The logits are those of pare_forward_f32 on all tokens so far, in its last row, up to f32
 * rounding. Their bits depend neither on the threads nor on how the tokens were cut into calls. */
#ifndef PARE_DECODE_H
#define PARE_DECODE_H
#include <pare/model.h>

typedef struct pare_decoder pare_decoder;

/* Copies the weights into the layout they are read in (f32) and makes room for max_tokens (0: the
 * context, or 1024 where there is none). PARE_ERR_INPUT names what cannot be decoded: vectors in
 * the place of ids, patterns that see the future or a graph, pooled outputs. The model must outlive
 * the decoder, which is freed with pare_decoder_free. */
PARE_MUST_USE pare_status pare_decoder_new(pare_decoder **out, const pare_model *m,
                                           size_t max_tokens, const pare_exec *exec, pare_err *err);
void pare_decoder_free(pare_decoder *d); /* accepts NULL */
/* Why the model cannot be decoded; NULL when it can. */
const char *pare_decoder_refuses(const pare_model *m);

/* Reads n more tokens; *logits (pare_model_outputs of them, until the next call) follow the last.
 * PARE_ERR_INPUT, and nothing is read: no token, an id out of range, or more than there is room
 * for. Nothing is allocated. */
PARE_MUST_USE pare_status pare_decoder_feed(pare_decoder *d, const int64_t *ids, size_t n,
                                            const float **logits, pare_err *err);
/* The same for one token. */
PARE_MUST_USE pare_status pare_decoder_step(pare_decoder *d, int64_t id, const float **logits,
                                            pare_err *err);
/* ---- several texts ----------------------------------------------------------------------------
 */

/* A decoder of `texts` texts that are read side by side, each with room for max_tokens: one pass
 * over the weights serves a token of every text. What becomes of a text does not depend on the
 * others, to the bit. The calls above and below that name no text mean text 0. */
enum { PARE_DECODE_TEXTS = 96 }; /* at most */
PARE_MUST_USE pare_status pare_decoder_new_texts(pare_decoder **out, const pare_model *m,
                                                 size_t texts, size_t max_tokens,
                                                 const pare_exec *exec, pare_err *err);
/* pare_decoder_feed for one of the texts. */
PARE_MUST_USE pare_status pare_decoder_feed_text(pare_decoder *d, size_t text, const int64_t *ids,
                                                 size_t n, const float **logits, pare_err *err);
/* One more token for each of n texts, which are named in ascending order; row i of the logits, from
 * *logits + i * *ld on, follows ids[i]. PARE_ERR_INPUT, and nothing is read: as above. */
PARE_MUST_USE pare_status pare_decoder_step_texts(pare_decoder *d, const size_t *text,
                                                  const int64_t *ids, size_t n,
                                                  const float **logits, size_t *ld, pare_err *err);
size_t pare_decoder_tokens_of(const pare_decoder *d, size_t text); /* read so far */
void pare_decoder_reset_text(pare_decoder *d, size_t text);        /* forgets this text */

/* ---- its state --------------------------------------------------------------------------------
 */

size_t pare_decoder_tokens(const pare_decoder *d); /* read so far */
size_t pare_decoder_room(const pare_decoder *d);   /* max_tokens */
void pare_decoder_reset(pare_decoder *d);          /* forgets all tokens of all texts */
#endif
