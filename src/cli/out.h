/* out.h - what goes to stdout: lines of text, or one JSON object. */
#ifndef PARE_CLI_OUT_H
#define PARE_CLI_OUT_H
#include "base/json.h"
#include "cli.h"
#include <stdarg.h>
#include <stdio.h>

/* Names and messages come from files. Whatever the command prints is formatted and then escaped:
 * control characters (a line end too), bidirectional overrides and bad UTF-8 are shown as \xNN, so
 * that no file can add a line or color one. Nothing else in src/cli prints a string that it did
 * not make itself (tests/cli/spoof.sh). */
void out_escaped(FILE *to, const char *fmt, va_list args);
void out_line(const char *fmt, ...) PARE_PRINTF(1, 2);  /* to stdout, with a line end */
void out_part(const char *fmt, ...) PARE_PRINTF(1, 2);  /* without */
void out_error(const char *fmt, ...) PARE_PRINTF(1, 2); /* to stderr, with a line end */
/* Lines that the library made, each escaped. */
void out_lines(const char *text);
/* "label         text" */
void out_row(const char *label, const char *fmt, ...) PARE_PRINTF(2, 3);
/* The same with a good or bad word in color (terminal only, and not with NO_COLOR) before it. */
void out_verdict(const char *label, bool good, const char *word, const char *fmt, ...)
    PARE_PRINTF(4, 5);
const char *out_count(char buf[32], uint64_t v); /* 124,439,808 */
const char *out_bytes(char buf[64], uint64_t v); /* 1,044,816 (1.04 MB) */
/* Bytes of a token as they may go to a terminal: control characters and bad UTF-8 as \xNN. */
const char *out_text(char *buf, size_t capacity, const char *text, size_t bytes);

/* Sizes and times before and after, side by side. */
void out_ms(const char *label, double before, double after);
void out_before_after(const facts *before, const facts *after, double ms_before, double ms_after);
/* With -v: the tiers, always together and in this order, then rounding, domain and every claim. */
void out_tiers(pare_arena *a, const pare_cert *cert);
extern const char *const out_section_words[PARE_SECTIONS]; /* "hypothesis", ... */
/* One claim in words, its figures rounded to the safe side. NULL: memory is out. */
const char *out_claim_words(pare_arena *a, const pare_claim *c);
const char *out_bound(char buf[40], const pare_claim *c); /* of a theorem */
/* A cosine from a bound on 1 - cosine, rounded down. */
const char *out_cosine(char buf[40], double distance);
const char *out_probability(char buf[40], double p); /* rounded down */
/* Output rows of a model on a set, and how many of them may have another largest entry. */
size_t out_rows(const pare_model *m, const pare_inputs *set);
size_t out_rows_changed(const pare_claim *t, size_t rows);

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Prints the tree on one line and deletes it; NULL or `complete` false: memory was out. */
pare_status out_json(cli *c, cJSON *root, bool complete);
/* The same of a tree that stays, where there is no cli to tell of failures. */
void out_json_object(const cJSON *root);
/* The same into a file of its own, with line ends. */
pare_status out_json_file(cli *c, cJSON *root, bool complete, const char *path);
/* {"command", "seed", "threads"}; NULL when memory is out. */
cJSON *out_json_begin(const cli *c);
bool out_json_facts(cJSON *to, const char *key, const facts *f);
/* JSON text that the library made, under a key of its own. */
bool out_json_text(cJSON *to, const char *key, const char *text);
bool out_json_cert(cJSON *to, const char *path, const pare_cert *cert);
bool out_json_shape(cJSON *to, const char *key, const size_t *shape, size_t ndim);
#endif
