/* items.h - the files of a report, read and recognized. Private to the module. */
#ifndef PARE_SRC_REPORT_ITEMS_H
#define PARE_SRC_REPORT_ITEMS_H
#include "base/json.h"
#include <pare/cert.h>
#include "page.h"

typedef enum item_kind {
    ITEM_CUT,
    ITEM_PROBE,
    ITEM_REPRO,
    ITEM_LOG,
    ITEM_PLAN,
    ITEM_LENGTH
} item_kind;

typedef struct item {
    item_kind kind;
    const char *path;
    char id[24];      /* of its card on the page */
    size_t number;    /* of its card, from 1 */
    pare_cert *cert;  /* cut */
    cJSON *json;      /* probe, repro, plan, length; of a cut the run file beside it, or NULL */
    const char *from; /* the file that json is of */
    const char *run_refused; /* cut: why the run file is not used; NULL: it is, or there is none */
    bool counted;            /* cut: the sizes were counted in the models that were verified */
    pare_size before, after;
    double file_before, file_after; /* bytes of their files, counted with them */
    const char *log;                /* the text of a training log */
    pare_truth holds;               /* cut, length: what the verifier said; unknown: not verified */
    const char *why;                /* its reason */
    double largest; /* cut: largest output of the input model, if a file has it; else nan */
} item;

typedef struct items {
    size_t n;
    item *v;
} items;

PARE_MUST_USE pare_status items_read(items *out, page *p, const char *const *files, size_t n);
void items_free(items *all); /* the JSON trees */

/* Looking things up: what is missing or null is nan, NULL or empty. What is of another type fails
 * the page, with the file and the key. */
double item_number(page *p, const cJSON *obj, const char *key);
const char *item_string(page *p, const cJSON *obj, const char *key);
pare_truth item_truth(page *p, const cJSON *obj, const char *key);
const cJSON *item_object(page *p, const cJSON *obj, const char *key);
const cJSON *item_objects(page *p, const cJSON *obj, const char *key); /* lists */
const cJSON *item_strings(page *p, const cJSON *obj, const char *key);
size_t item_numbers(double **out, page *p, const cJSON *obj, const char *key);

/* A kind of cut: its word, and what it does in one sentence. The last row is for all others. */
typedef struct cut_kind {
    const char *prefix, *word, *does;
    unsigned style_index; /* color and mark in plots */
} cut_kind;
const cut_kind *cut_kind_of(const item *it); /* cuts, length plans and their runs */
/* The title of its card in the contents. */
const char *item_title(page *p, const item *it);

/* The norm of almost every certificate (claim_kinds.c). */
#define OUTPUT_ENTRIES "largest absolute difference over the output entries"

/* A figure of both models: counted in the verified ones, or as the run file reports it. */
typedef struct before_after {
    double before, after;
    bool verified;
} before_after;
before_after parameters_of(page *p, const item *it);
before_after bytes_of(page *p, const item *it); /* of the weights */
before_after file_bytes_of(page *p,
                           const item *it); /* of the files; of the weights where nobody knows */
double inputs_of(const item *it);           /* of the headline; nan: not known */
bool is_vacuous(const item *it, double bound);
/* The claim in one plain sentence. */
const char *claim_sentence(page *p, const pare_claim *t);
/* Tables of all claims but those drawn as bars. */
bool claim_is_bar(const pare_cert *c, const pare_claim *t);
void claim_tables(page *p, const item *it);

/* The top of the page: what it is, what the words mean, what is on it, who wrote it. */
void page_intro(page *p, const items *all);
void page_contents(page *p, const items *all);
/* What stands before the cards. */
void summary_cuts(page *p, const items *all);
void summary_repro(page *p, const items *all); /* where there are several papers */
/* One card each. */
void card_cut(page *p, const item *it);
void card_probe(page *p, const item *it);
void card_repro(page *p, const item *it);
void card_log(page *p, const item *it);
void card_plan(page *p, const item *it);
void card_length(page *p, const item *it);
/* What a certificate is on this page: the word and its style. */
const char *verdict_word(const item *it);
const char *verdict_class(const item *it);
/* Whether it holds, or how to check it: of certificates. */
void page_verdict(page *p, const item *it);
/* The whole card of a certificate that does not hold: its name, the reason, and none of its
 * figures. */
void page_refuted(page *p, const item *it, const char *norm, const char *domain, double claimed);
#endif
