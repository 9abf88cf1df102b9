/* decode_state.h - one token after the other: a language model that remembers what it has read.
 *
 *     pare_decoder_new(&d, model, 0, &exec, &err);
 *     pare_decoder_feed(d, ids, n, &logits, &err);    the prompt
 *     pare_decoder_step(d, id, &logits, &err);        what was chosen, again and again
 *
 * The logits are those of pare_forward_f32 on all tokens so far, in its last row, up to f32
 * rounding. Their bits depend neither on the threads nor on how the tokens were cut into calls. */
#ifndef PARE_MODEL_DECODE_STATE_H
#define PARE_MODEL_DECODE_STATE_H
#include <pare/run.h>

/* Why the model cannot be decoded; NULL when it can. */
const char *pare_decoder_refuses(const pare_model *m);

/* ---- several texts --------------------------------------------------------------------------- */

/* A decoder of `texts` texts that are read side by side, each with room for max_tokens: one pass
 * over the weights serves a token of every text. What becomes of a text does not depend on the
 * others, to the bit. The calls above and below that name no text mean text 0. */
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

/* ---- its state ------------------------------------------------------------------------------- */

size_t pare_decoder_tokens(const pare_decoder *d); /* read so far */
size_t pare_decoder_room(const pare_decoder *d);   /* max_tokens */
#endif
