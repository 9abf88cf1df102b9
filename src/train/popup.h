/* popup.h - edge-popup as a run sees it (pare/popup.h says what it is). Private to src/train. */
#ifndef PARE_SRC_TRAIN_POPUP_H
#define PARE_SRC_TRAIN_POPUP_H
#include <pare/train.h>

typedef struct popup popup;

/* Takes the values of `student` as the frozen weights. Its matrices have scores, drawn from `seed`;
 * its vectors are neither masked nor trained. PARE_ERR_USAGE: keep is not in (0, 1], or nothing of
 * a matrix would be left. The student is not masked before popup_apply. */
PARE_MUST_USE pare_status popup_new(popup **out, pare_params *student, const pare_popup *o,
                                    uint64_t seed, const pare_exec *exec, pare_err *err);
void popup_free(popup *p); /* accepts NULL */
/* What the optimizer moves: the scores lie where the student's values lie. */
pare_params *popup_scores(popup *p);
/* The student's values from the scores as they are now. */
void popup_apply(popup *p);
/* d loss / d values becomes d loss / d scores. */
void popup_score_gradient(const popup *p, float *grad);
#endif
