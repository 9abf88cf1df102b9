/* show_cut.h - what every cut prints: size, speed and quality before and after, what is proven, and
 * where the certificate is. One printer for fold, width, depth, ticket, plan and compose. */
#ifndef PARE_CLI_SHOW_CUT_H
#define PARE_CLI_SHOW_CUT_H
#include "out.h"

/* Sizes, times, quality, the proven statements, balls and new inputs. */
void show_results(const cli *c, const pare_reduction *r);
/* What is proven in the user's terms, where it is claimed: cosines and nearest neighbors of embeddings,
 * what labels and tokens stay the largest, KL divergence. `r` NULL: rows are not counted, and labels only
 * said of models with a distribution. */
void show_terms(const pare_cert *cert, const pare_reduction *r);
/* What was cut: `words`, then the widths and the share of the parameters of each part that changed.
 */
void show_shapes(const pare_reduction *r, const char *words);
/* The files, and how to check them. With -v before that every figure and every claim. */
void show_end(const cli *c, const pare_reduction *r);

/* "12.3 MB"; four digits. */
const char *show_bytes(char buf[32], uint64_t v);
/* The metric in words: "loss", "accuracy", "AUC", "mean squared error". */
const char *show_metric_name(const char *metric);
#endif
