/* frozen_gpt.h - edge-popup: which part of a random network already is a model?
 *
 * Weights w are frozen; every matrix has scores s. The K = N - floor((1 - keep) N) largest |s| of
 * a matrix (of equals, those that come first) are its mask m, and w m is the weight that is used.
 * On the backward pass the mask counts as |s|: d loss / d s = (d loss / d (w m)) w sign(s), for
 * what is left out as well. Scores begin uniform on +-1 / sqrt(columns); AdamW moves them; no
 * weight ever moves. The result is a seed and a mask.
 *
 *   pare_frozen_gpt src = {.kind = PARE_FROZEN_NORMAL, .seed = 1, .qk_scale = 2.4};
 *   pare_init init = {.kind = PARE_INIT_GPT, ..., .source = &src};     frozen weights
 *   pare_popup pop = {.keep = 0.3};
 *   pare_train_opts o = {..., .popup = &pop};                          pare_train finds the mask */
#ifndef PARE_TRAIN_FROZEN_GPT_H
#define PARE_TRAIN_FROZEN_GPT_H
#include <pare/train.h>

/* Where matrix `name` of a GPT of this width and depth comes from; false: it is not frozen. */
bool pare_frozen_gpt_of(pare_frozen *out, const pare_frozen_gpt *s, const char *name, size_t dim,
                        size_t layers);

/* N - floor((1 - keep) N) */
size_t pare_popup_kept(double keep, size_t n);
#endif
