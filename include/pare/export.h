/* pare/export.h - models for other programs. */
#ifndef PARE_EXPORT_H
#define PARE_EXPORT_H
#include <pare/model.h>

/* A whole model as ONNX (opset 17, f32, no more than the standard operators), whole or not at all:
 *
 *     ids i64 [batch, tokens], or x f32 [batch, tokens, d]  ->  y f32 [batch, tokens, out], or
 *                                                               [batch, out] where the head pools
 *
 * Batch and length are free, up to the context of learned positions. Weights that are f64 are
 * rounded; polynomial attention becomes exact attention. PARE_ERR_INPUT for what has no such graph:
 * attention over a graph, and 2 GiB or more. *bytes may be NULL. */
PARE_MUST_USE pare_status pare_export_onnx(const pare_model *m, const char *path, bool overwrite,
                                           uint64_t *bytes, pare_err *err);

/* A folder with config.json and model.safetensors (f32) under Hugging Face's names: GPT-2, Llama
 * (Mistral where there is a window) or BERT for sequence classification. PARE_ERR_INPUT, with the
 * first thing that does not fit, for models that have no such form: heads of different widths,
 * norms that divide by another width, replaced attention. A failure leaves no file of this call. */
PARE_MUST_USE pare_status pare_export_hf(const pare_model *m, const char *folder, bool overwrite,
                                         pare_err *err);

/* The one small engine that serves every call of a plan, as ONNX with fixed shapes and no weights:
 *
 *     q [batch, rows, dk], k [batch, rows, dk], v [batch, rows, dv]
 *     y = Softmax(q k^T) v  [batch, rows, dv] */
typedef struct pare_engine_shape {
    size_t batch, rows, dk, dv;
    bool causal; /* row i sees rows 0 .. i; y is then called causal_y */
} pare_engine_shape;
PARE_MUST_USE pare_status pare_export_engine(const pare_engine_shape *s, const char *path,
                                             bool overwrite, uint64_t *bytes, pare_err *err);
/* The shape that suits zero-reference calls of every head of a model: its widest head with a column
 * for the reference's score, and two for the masses. */
PARE_MUST_USE pare_status pare_engine_for(pare_engine_shape *out, const pare_model *m, size_t rows,
                                          size_t batch, pare_err *err);
#endif
