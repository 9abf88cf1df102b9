/* alike.h - which parts of two models are the same, bit for bit: what is the same in both needs no
 * bound. */
#ifndef PARE_SRC_DEPTH_ALIKE_H
#define PARE_SRC_DEPTH_ALIKE_H
#include <pare/model.h>

bool same_weight(const pare_weight *a, const pare_weight *b);
bool same_norm(const pare_norm *a, const pare_norm *b);
bool same_attn(const pare_attn *a, const pare_attn *b); /* poly is exact attention */
bool same_ffn(const pare_ffn *a, const pare_ffn *b);
/* Stem, positions, pattern and head; NULL, or what differs in words. */
const char *ends_differ(const pare_model *f, const pare_model *g);
#endif
