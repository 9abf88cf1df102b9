/* pare/popup.h - edge-popup: which part of a random network already is a model?
 *
 * Weights w are frozen; every matrix has scores s. The K = N - floor((1 - keep) N) largest |s| of
 * a matrix (of equals, those that come first) are its mask m, and w m is the weight that is used.
 * On the way back the mask counts as |s|: d loss / d s = (d loss / d (w m)) w sign(s), for what is
 * left out as well. Scores begin uniform on +-1 / sqrt(columns); AdamW moves them; no weight ever
 * moves. The result is a seed and a mask.
 *
 *   pare_frozen_gpt src = {.kind = PARE_FROZEN_NORMAL, .seed = 1, .qk_scale = 2.4};
 *   pare_init init = {.kind = PARE_INIT_GPT, ..., .source = &src};     frozen weights
 *   pare_popup pop = {.keep = 0.3};
 *   pare_train_opts o = {..., .popup = &pop};                          pare_train finds the mask */
#ifndef PARE_POPUP_H
#define PARE_POPUP_H
#include <pare/frozen.h>
#include <pare/model.h>

/* How the frozen weights of a GPT are made. The spread is that of GPT-2 at width 768 and keeps its
 * activations at other widths: std = 0.02 sqrt(768 / d), the last map of each branch by
 * 1 / sqrt(2 layers), queries and keys by qk_scale. Layer norms are plain, there are no biases, and
 * the gain of the last norm is the constant sqrt(768 / d): without it the logits of a narrow model
 * could not grow. */
typedef struct pare_frozen_gpt {
    pare_frozen_kind kind;
    uint64_t seed;
    double qk_scale;
} pare_frozen_gpt;

/* (head width)^(1/4): what the theory multiplies queries and keys with. */
double pare_popup_theory_scale(size_t dk);
/* Where matrix `name` of a GPT of this width and depth comes from; false: it is not frozen. */
bool pare_frozen_gpt_of(pare_frozen *out, const pare_frozen_gpt *s, const char *name, size_t dim,
                        size_t layers);

typedef struct pare_popup {
    double keep; /* of the weights of every matrix: above 0, at most 1 */
} pare_popup;

/* N - floor((1 - keep) N) */
size_t pare_popup_kept(double keep, size_t n);

/* From now on m is saved as a ticket (pare/coded.h): seed and masks. PARE_ERR_VERIFY names a number
 * that is neither 0 nor that of the source. */
PARE_MUST_USE pare_status pare_popup_code(pare_model *m, const pare_frozen_gpt *from,
                                          pare_err *err);
#endif
