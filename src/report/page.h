/* page.h - writes the HTML of a report. After the first failure, which w.st keeps, nothing more is
 * written. Private to the module. */
#ifndef PARE_SRC_REPORT_PAGE_H
#define PARE_SRC_REPORT_PAGE_H
#include "base/work.h"
#include <pare/base.h>

typedef struct page {
    pare_work w; /* what the page allocates lives as long as its arena */
    pare_out *out;
    const char *file; /* what is being read: named where it is wrong */
    bool open;        /* cards are open at first: there are few */
} page;

/* Markup with figures and words in it. The markup is a literal (anything else does not compile),
 * and every word that %s or %c puts into it is escaped, for text and quoted attributes alike:
 * strings of files cannot become markup. Conversions: %s %.*s %c %d %u %zu, and %f %g with a
 * precision. */
#define page_put(p, ...) page_printf(p, "" __VA_ARGS__)
void page_printf(page *p, const char *fmt, ...) PARE_PRINTF(2, 3);
/* The same for one string; NULL: nothing. Control characters, bidirectional overrides and bad UTF-8
 * become U+FFFD. */
void page_text(page *p, const char *text);
/* <tag class="class">text</tag>; class NULL: none. */
void page_tag(page *p, const char *tag, const char *cls, const char *text);

/* Zeroed memory and a formatted string that live as long as the page; NULL and "" when memory is
 * out, which w.st then says. The string is not escaped yet: it goes through page_text, page_tag or
 * a %s of page_put. */
void *page_alloc(page *p, size_t n, size_t size);
const char *page_format(page *p, const char *fmt, ...) PARE_PRINTF(2, 3);

void page_begin(page *p, const char *title);
void page_end(page *p);

/* One card: a box that opens and closes. Its head says what it is about in one sentence. */
typedef struct card {
    const char *id;         /* links go to it, and open the card */
    size_t number;          /* in the contents */
    const char *kind;       /* "Width" */
    const char *title;      /* what it is about, a file most often */
    const char *cls, *word; /* style and text of a chip behind the title; NULL: none */
    const char *sentence;   /* NULL: none */
    bool open;              /* even where the page has many cards */
} card;
void page_card(page *p, const card *c);
void page_card_end(page *p);
/* A part of a card that is closed at first. `beside`: small text behind the title; NULL: none. */
void page_fold(page *p, const char *title, const char *beside);
void page_fold_end(page *p);
/* One figure with a label before it and a remark behind it; cls of the figure may be NULL. A figure
 * that this page has not verified is marked. */
void page_fact(page *p, const char *label, const char *value, const char *cls, const char *beside,
               bool verified);
/* The line at the foot of a card: where its numbers come from. The command (NULL: not known) is
 * what `says` reports. */
void page_source(page *p, const char *file, const char *command, const char *says);

/* N of the class .needN: a hint that is seen only where fewer than N pixels are free; N is at least
 * `pixels`. */
int page_need(double pixels);

/* Tables whose rows become cards on a phone: `columns` are their names, each ended by "|", those of
 * figures with a "#" before it. Cells are written in that order. */
typedef struct table {
    const char *columns, *next; /* next: the name of the next cell */
} table;
void table_begin(page *p, table *t, const char *columns, const char *cls);
void table_row(page *p, table *t);
void table_cell(page *p, table *t, const char *cls); /* opens it; cls NULL: that of its column */
void table_cell_end(page *p);
void table_text(page *p, table *t, const char *text); /* a whole cell */
/* A whole cell with <tag class="tag_cls">text</tag>. */
void table_tag(page *p, table *t, const char *tag, const char *tag_cls, const char *text);
void table_row_end(page *p);
void table_end(page *p);

/* Numbers as people read them: four digits, a bound never rounded down, inf as a word. */
typedef char number[48];
const char *show_value(number buf, double v);
const char *show_bound(number buf, double v);
const char *show_lower(number buf, double v);     /* a lower bound: rounded down */
const char *show_count(number buf, double v);     /* 1,234,567 */
const char *show_file_size(number buf, double v); /* 1.23 MB, powers of 1000 */
#endif
