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
size_t pare_decoder_tokens(const pare_decoder *d); /* read so far */
size_t pare_decoder_room(const pare_decoder *d);   /* max_tokens */
void pare_decoder_reset(pare_decoder *d);          /* forgets all tokens */
#endif
