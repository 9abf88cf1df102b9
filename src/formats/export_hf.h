/* export_hf.h - a model under Hugging Face's names: what is written, and what does not fit. */
#ifndef PARE_FORMATS_EXPORT_HF_H
#define PARE_FORMATS_EXPORT_HF_H
#include "base/json.h"
#include <pare/model.h>

/* Up to three weights above one another, as [out, in] or (transposed) as [in, out]. */
typedef struct hf_tensor {
    struct hf_tensor *next;
    const char *name;
    pare_weight part[3];
    size_t parts, rows, cols; /* of each part */
    bool vector, transposed;
    double absent; /* all numbers of a part that is not there */
    size_t pairs; /* rows of a head that lie as pairs and are to lie half by half; 0: as they are */
} hf_tensor;

typedef struct hf {
    const pare_model *m;
    pare_arena *arena;
    cJSON *config;
    hf_tensor *first, **end;
    hf_tensor nobody; /* what a failure fills in */
    double eps;       /* of all norms; < 0: not known yet */
    pare_status st;
    pare_err *err;
} hf;

/* The first reason why the model is none of the family stays. */
void hf_unfit(hf *x, const char *fmt, ...) PARE_PRINTF(2, 3);
void hf_need(hf *x, bool holds, const char *fmt, ...) PARE_PRINTF(3, 4);
/* A tensor by that name (a printf format for the block's number). */
hf_tensor *hf_put(hf *x, const pare_weight *w, size_t rows, size_t cols, const char *fmt, size_t l);
void hf_put_vector(hf *x, const pare_weight *w, size_t n, const char *fmt, size_t l);
/* name.weight and name.bias, zeros where there is no bias. */
void hf_put_dense(hf *x, const pare_dense *d, const char *name, size_t l, bool transposed);
void hf_put_norm(hf *x, const pare_norm *n, size_t d, bool bias, const char *name, size_t l);

/* What families ask of a block; `where` is its name in the words. */
enum { HF_WHERE = 32 };
void hf_check_norm(hf *x, const pare_norm *n, pare_norm_kind kind, size_t d, const char *where);
/* Heads alike and in order; how many have keys of their own. Fills in `where`. */
size_t hf_check_heads(hf *x, size_t l, char where[HF_WHERE]);
void hf_check_norms_before(hf *x, size_t l, pare_norm_kind kind, size_t d, const char *where);
void hf_check_stream(hf *x, size_t l, size_t d, const char *where);
/* A head for each group of columns, and two maps with an activation. Fills in `where`. */
void hf_check_mlp_block(hf *x, const char *family, size_t l, size_t d, char where[HF_WHERE]);
const char *hf_act(pare_act act);
void hf_family(hf *x, const char *type, const char *architecture);
void hf_number(hf *x, const char *key, double v);
void hf_word(hf *x, const char *key, const char *word);
void hf_flag(hf *x, const char *key, bool v);

void hf_gpt2(hf *x);
void hf_llama(hf *x);
void hf_bert(hf *x);
#endif
