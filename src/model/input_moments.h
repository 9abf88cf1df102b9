/* input_moments.h - second moments of the rows that enter a matrix of a model: they weight its
 * errors. */
#ifndef PARE_MODEL_INPUT_MOMENTS_H
#define PARE_MODEL_INPUT_MOMENTS_H
#include <pare/run.h>

/* Second moments of the rows x of f and y of g that enter the matrix with this stream (which says
 * where in the model it is, pare/model.h), means over the rows of the inputs. */
typedef struct input_moments {
    pare_mat square; /* E y y^T; v NULL: the rows that enter it are not known */
    pare_mat cross;  /* E x y^T; v NULL: f was not given */
} input_moments;

/* f and g have the same shapes; f may be NULL. Rows are not known of the embedding and of what stands in the
 * place of softmax heads. In the arena. */
PARE_MUST_USE pare_status input_moments_of(input_moments *out, pare_arena *a, const pare_model *f,
                                           const pare_model *g, uint64_t stream,
                                           const pare_inputs *set, const pare_exec *exec,
                                           pare_err *err);
#endif
