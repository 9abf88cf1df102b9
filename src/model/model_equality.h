/* model_equality.h - which parts of two models are the same, bit for bit, in all that they read:
 * what is the same in both needs no bound. */
#ifndef PARE_MODEL_MODEL_EQUALITY_H
#define PARE_MODEL_MODEL_EQUALITY_H
#include <pare/model.h>

/* Equal shapes, types and bytes; of a norm, a skip or a feed-forward part also equal kinds and
 * settings. Absent equals absent. */
bool pare_same_weight(const pare_weight *a, const pare_weight *b);
bool pare_same_norm(const pare_norm *a, const pare_norm *b);
bool pare_same_skip(const pare_skip *a, const pare_skip *b);
bool pare_same_attn(const pare_attn *a, const pare_attn *b); /* poly is exact attention */
bool pare_same_ffn(const pare_ffn *a, const pare_ffn *b);
/* Tokens share the same rows, or none do. */
bool pare_same_rows(const pare_embedding *a, const pare_embedding *b);
/* Embedding, positions, pattern and head; NULL, or what differs in words. */
const char *pare_model_ends_differ(const pare_model *f, const pare_model *g);
#endif
