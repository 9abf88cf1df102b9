/* describe.h - a model's parts in words. */
#ifndef PARE_CLI_DESCRIBE_H
#define PARE_CLI_DESCRIBE_H
#include <pare/pare.h>

#define DESCRIBE_BYTES 400

/* "attention 12 heads of 64, MLP 768-3072-768 gelu_tanh, pre layer norm" */
void describe_block(char buf[DESCRIBE_BYTES], const pare_block *b);
/* What the model is for, in a few words: "language model". */
const char *describe_task(const pare_model *m);
/* "language model: token ids below 3, embedding of 48 numbers; attention causal; ..." */
void describe_kind(char buf[DESCRIBE_BYTES], const pare_model *m);
void describe_input(char buf[DESCRIBE_BYTES], const pare_model *m);
void describe_positions(char buf[DESCRIBE_BYTES], const pare_model *m);
void describe_pattern(char buf[DESCRIBE_BYTES], const pare_model *m);
void describe_head(char buf[DESCRIBE_BYTES], const pare_model *m);
/* What kind of file the model came from, by its first bytes, as its loader has read them. */
const char *describe_format(pare_files *files, const char *path);
size_t describe_kv_heads(const pare_attn *a); /* distinct keys */
#endif
