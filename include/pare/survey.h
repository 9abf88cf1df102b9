/* pare/survey.h - what the theorems about width find in a model on its data: looked at, not cut.
 *
 * Everything here is an estimate in f64. It explains why a cut is cheap or dear; no bound rests on
 * it. */
#ifndef PARE_SURVEY_H
#define PARE_SURVEY_H
#include <pare/forward.h>

typedef struct pare_survey_opts {
    size_t dim;        /* the width that is thought of; 0: an eighth of the stream */
    size_t clusters;   /* at most; 0: dim */
    double eps, delta; /* of the Johnson-Lindenstrauss lemma */
} pare_survey_opts;
#define PARE_SURVEY_OPTS_DEFAULT                                                                   \
    {                                                                                              \
        .eps = 0.5, .delta = 0.01                                                                  \
    }

/* Theorem 4.2: one place of the stream. */
typedef struct pare_survey_point {
    char name[24];       /* h0, z0, h1, ... */
    size_t width;        /* as it is */
    double residual_est; /* largest distance of a row from an affine subspace of `dim` dimensions */
} pare_survey_point;

/* The bilinear form of a head in the metric of the data: how many dimensions its scores need. */
typedef struct pare_survey_head {
    size_t layer, head;
    size_t dim; /* of queries and keys */
    size_t n;
    double *form_est; /* n singular values, descending; they say what each dimension is worth */
    size_t needed;    /* dimensions after which less than 1 % of the scores' worth is lost */
} pare_survey_head;

typedef struct pare_survey_layer {
    /* what stands in the way of the plain nets of the theorems */
    bool skip, bias, scaled, relu;
    size_t nheads;
    /* Theorem 3.3: different rows of the stream, different pairs among the visible ones, and the
     * dimension that the lemma asks for, all heads at once */
    size_t rows, pairs, jl_dim;
    size_t qk_dim; /* largest of the heads */
    /* Proposition 4.3 at rank `rank`: hidden units, the largest leverage score among them (rank /
     * units would be even), and the draws that sampling asks for */
    size_t units, rank;
    double leverage_est, draws;
    /* Theorem 4.4 with at most `clusters` clusters of z: radius and separation must be below 1 */
    size_t clusters;
    double radius_est, separation_est, least_est, most_est; /* norms of the centres */
} pare_survey_layer;

typedef struct pare_survey {
    size_t dim;
    double eps, delta;
    size_t nlayers, npoints, nheads;
    pare_survey_layer *layers;
    pare_survey_point *points;
    pare_survey_head *heads;
} pare_survey;

/* `data`: one graph (or one sequence of vectors). Lists live in the arena. PARE_ERR_INPUT names the
 * place of the model that these theorems do not speak about. */
PARE_MUST_USE pare_status pare_width_survey(pare_survey *out, pare_arena *a, const pare_model *m,
                                            const pare_inputs *data, const pare_survey_opts *o,
                                            const pare_exec *exec, pare_err *err);
#endif
