/* items.h - the files of a report, read and recognised. Private to the room. */
#ifndef PARE_SRC_REPORT_ITEMS_H
#define PARE_SRC_REPORT_ITEMS_H
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
    char id[24];      /* of its box on the page */
    pare_cert *cert;  /* cut */
    cJSON *json;      /* probe, repro, plan, length; of a cut the run file beside it, or NULL */
    const char *from; /* the file that json is of */
    const char *run_refused; /* cut: why the run file is not used; NULL: it is, or there is none */
    bool counted;            /* cut: the sizes were counted in the models that were verified */
    pare_size before, after;
    const char *log;  /* the text of a training log */
    pare_truth holds; /* cut, length: what the verifier said; unknown: nobody asked */
    const char *lie;  /* its reason */
    double largest;   /* cut: largest output of the input model where a probe tells; else nan */
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

/* One box each. */
void summary_cuts(page *p, const items *all);
void summary_repro(page *p, const items *all); /* where there are several papers */
void card_cut(page *p, const item *it);
void card_probe(page *p, const item *it);
void card_repro(page *p, const item *it);
void card_log(page *p, const item *it);
void card_plan(page *p, const item *it);
void card_length(page *p, const item *it);
/* Whether it holds, or how to ask: of certificates. */
void page_verdict(page *p, const item *it);
/* The whole box of a certificate that does not hold: its name, the reason, and none of its figures.
 */
void page_refuted(page *p, const item *it, const char *kicker, const char *norm, const char *domain,
                  double proven);
#endif
