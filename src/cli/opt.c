/* opt.c - parses the options of a command by its table (opt.h). */
#include "opt.h"
#include "suggest.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows of many commands ------------------------------------------------------------------ */

/* clang-format off */
opt opt_data(const char **to, const char *help, const char *unset)
{
    return (opt){.name = "data", .kind = OPT_TEXT, .to = to, .metavar = "FILE", .help = help,
                 .unset = unset, .required = !unset};
}

opt opt_split(size_t *to)
{
    return (opt){.name = "split", .kind = OPT_SIZE, .to = to, .metavar = "K", .max = OPT_MOST_SPLIT,
                 .rare = true, .help = "which train/validation/test split of a graph's nodes is used"};
}

opt opt_column(const char **to)
{
    return (opt){.name = "column", .kind = OPT_TEXT, .to = to, .metavar = "NAME|N", .unset = "text, sentence, or the only one",
                 .rare = true, .help = "which column of a .csv, .tsv or .jsonl is the text: its name, or (not .jsonl) its number from 1"};
}
/* clang-format on */

/* ---- words --------------------------------------------------------------------------------- */

typedef struct words {
    const opt_spec *syntax;
    opt_line *line;
    int argc, at;
    char **argv;
} words;

static opt_result bad_line(const words *w, const char *fmt, ...) PARE_PRINTF(2, 3);
static opt_result bad_line(const words *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(w->line->message, sizeof w->line->message, fmt, args);
    va_end(args);
    return OPT_BAD;
}

/* "--threads" or "-o": as most write it. */
static const char *option_name(char buf[64], const opt *o)
{
    if (o->letter)
        snprintf(buf, 64, "-%c", o->letter);
    else
        snprintf(buf, 64, "--%s", o->name);
    return buf;
}

static const opt *opt_row(const opt_spec *syntax, size_t i)
{
    return i < syntax->nown ? &syntax->own[i] : &syntax->common[i - syntax->nown];
}

/* ---- values -------------------------------------------------------------------------------- */

static bool whole_number(uint64_t *out, const char *word)
{
    if (word[0] < '0' || word[0] > '9') return false; /* strtoull would take " -1" */
    char *end = NULL;
    errno = 0;
    const unsigned long long v = strtoull(word, &end, 10);
    if (*end || errno) return false;
    *out = v;
    return true;
}

/* "200k", "1.5G": a number whose product with the suffix is whole. */
static bool suffixed_number(uint64_t *out, const char *word)
{
    static const struct {
        char letter;
        double factor;
    } units[] = {{'k', 1e3}, {'K', 1e3}, {'M', 1e6}, {'G', 1e9}};
    const size_t digits = strspn(word, "0123456789.");
    if (digits == 0 || digits > 15 || word[0] == '.' || strlen(word) != digits + 1) return false;
    char *end = NULL;
    const double v = strtod(word, &end);
    if (end != word + digits) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (word[digits] == units[i].letter) {
            const double product = v * units[i].factor;
            /* 1.1G is 1100000000 although 1.1 is not a binary fraction. */
            const double whole = nearbyint(product);
            if (!(whole < 1e18) || fabs(product - whole) > 1e-6 * whole + 1e-9) return false;
            *out = (uint64_t)whole;
            return true;
        }
    return false;
}

static opt_result set_size(const words *w, const opt *o, const char *word)
{
    char buf[64], range[64];
    uint64_t v = 0;
    const bool suffix = o->max >= 1000 && isalpha((unsigned char)word[strlen(word) - 1]);
    if (o->max == SIZE_MAX)
        snprintf(range, sizeof range, "from %zu up", o->min);
    else
        snprintf(range, sizeof range, "from %zu to %zu", o->min, o->max);
    if ((!whole_number(&v, word) && !suffixed_number(&v, word)) || v < o->min || v > o->max)
        return bad_line(w, "%s: '%s' is not a whole number %s%s%s%s", option_name(buf, o), word,
                        range,
                        suffix ? " (k, M and G stand for thousands, millions and billions)" : "",
                        o->hint ? "; " : "", o->hint ? o->hint : "");
    *(size_t *)o->to = (size_t)v;
    return OPT_GO;
}

static bool real_number(double *out, const char *word, const char *suffix)
{
    char *end = NULL;
    if (!*word || word[0] == ' ' || word[0] == '\t' || word[0] == '\n') return false;
    *out = strtod(word, &end);
    return end != word && strcmp(end, suffix) == 0;
}

/* A real number, or a share that may be written as a percentage. */
static opt_result set_real(const words *w, const opt *o, const char *word)
{
    const bool share = o->kind == OPT_SHARE;
    char buf[64];
    double v = 0;
    bool number = real_number(&v, word, "");
    if (share && !number && real_number(&v, word, "%")) v /= 100, number = true;
    if (number && v >= o->low && v <= o->high) {
        *(double *)o->to = v;
        return OPT_GO;
    }
    if (share)
        return bad_line(w, "%s: '%s' is not a share from %g to %g: write 0.75 or 75%%",
                        option_name(buf, o), word, o->low, o->high);
    if (isinf(o->high))
        return bad_line(w, "%s: '%s' is not a number from %g up", option_name(buf, o), word,
                        o->low);
    return bad_line(w, "%s: '%s' is not a number from %g to %g", option_name(buf, o), word, o->low,
                    o->high);
}

static opt_result set_choice(const words *w, const opt *o, const char *word)
{
    char buf[64], list[400];
    for (size_t i = 0; o->choices[i]; i++)
        if (strcmp(word, o->choices[i]) == 0) {
            *(size_t *)o->to = i;
            return OPT_GO;
        }
    const char *const near = suggest_word(word, o->choices);
    opt_list(list, sizeof list, o->choices);
    if (near)
        return bad_line(w, "%s: there is no '%s'; did you mean '%s'? Choose one of %s",
                        option_name(buf, o), word, near, list);
    return bad_line(w, "%s: there is no '%s'; choose one of %s", option_name(buf, o), word, list);
}

static opt_result set_value(const words *w, const opt *o, const char *word)
{
    char buf[64];
    opt_texts *const texts = o->to;
    if (!*word) return bad_line(w, "%s: the value is empty", option_name(buf, o));
    switch (o->kind) {
    case OPT_FLAG:
        return OPT_BAD; /* has none */
    case OPT_TEXT:
        *(const char **)o->to = word;
        break;
    case OPT_TEXTS:
        if (texts->n == OPT_MOST_TEXTS)
            return bad_line(w, "%s: given more than %d times", option_name(buf, o), OPT_MOST_TEXTS);
        texts->v[texts->n++] = word;
        break;
    case OPT_SIZE:
        return set_size(w, o, word);
    case OPT_SEED:
        if (!whole_number(o->to, word))
            return bad_line(w, "%s: '%s' is not a whole number from 0 to 18446744073709551615",
                            option_name(buf, o), word);
        break;
    case OPT_REAL:
    case OPT_SHARE:
        return set_real(w, o, word);
    case OPT_CHOICE:
        return set_choice(w, o, word);
    }
    return OPT_GO;
}

/* ---- options ------------------------------------------------------------------------------- */

/* The row of --name or -letter, which is then marked as given; NULL: there is none. Given
 * several times, the last value counts. */
static const opt *find_option(const words *w, const char *name, size_t length, char letter)
{
    for (size_t i = 0; i < w->syntax->nown + w->syntax->ncommon; i++) {
        const opt *const o = opt_row(w->syntax, i);
        if (letter ? o->letter == letter
                   : strlen(o->name) == length && strncmp(o->name, name, length) == 0) {
            w->line->given[i] = true;
            return o;
        }
    }
    return NULL;
}

static opt_result unknown_option(const words *w, const char *word)
{
    const char *names[OPT_MOST_ROWS + 2] = {0};
    char typed[64];
    size_t n = 0;
    for (; n < w->syntax->nown + w->syntax->ncommon; n++) names[n] = opt_row(w->syntax, n)->name;
    names[n] = "help";
    const char *const name = word + strspn(word, "-");
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(name, "="), name);
    /* Common options that this command has no use for. */
    if (strcmp(typed, "seed") == 0)
        return bad_line(w, "there is no '%s' here: this command draws no random numbers", word);
    if (strcmp(typed, "out") == 0 || strcmp(typed, "force") == 0 || strcmp(word, "-o") == 0 ||
        strcmp(word, "-f") == 0)
        return bad_line(w, "there is no '%s' here: this command writes no file", word);
    const char *const near = suggest_word(typed, names);
    if (!near) return bad_line(w, "unknown option '%s'", word);
    return bad_line(w, "unknown option '%s'; did you mean '--%s'?", word, near);
}

/* The next word as the value of o. A word that looks like an option mostly means that the value was
 * forgotten; one that is meant is written --opt=-x. A negative number gets its range error. */
static opt_result take_value(words *w, const opt *o, const char *as)
{
    const char *next = w->at < w->argc ? w->argv[w->at] : NULL;
    const bool dashed = next && next[0] == '-' && next[1] && !(next[1] >= '0' && next[1] <= '9');
    if (!next || dashed)
        return bad_line(w, "%s needs a value: %s %s", as, as, o->metavar ? o->metavar : "VALUE");
    w->at++;
    return set_value(w, o, next);
}

static opt_result long_option(words *w, const char *word)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    const opt *o = find_option(w, name, equals ? (size_t)(equals - name) : strlen(name), 0);
    if (!o) return unknown_option(w, word);
    if (o->kind == OPT_FLAG) {
        if (equals) return bad_line(w, "--%s takes no value: '%s'", o->name, word);
        *(bool *)o->to = true;
        return OPT_GO;
    }
    return equals ? set_value(w, o, equals + 1) : take_value(w, o, word);
}

/* -q, -qf, -t 2, -t2 */
static opt_result short_options(words *w, const char *word)
{
    for (const char *p = word + 1; *p; p++) {
        const opt *o = find_option(w, "", 0, *p);
        if (!o && word[2] && strlen(word) <= 4)
            return bad_line(w, "unknown option '-%c' in '%s'", *p, word);
        if (!o) return unknown_option(w, word); /* -keep may mean --keep */
        if (o->kind != OPT_FLAG) {
            const char as[3] = {'-', *p, '\0'};
            return p[1] ? set_value(w, o, p + 1) : take_value(w, o, as);
        }
        *(bool *)o->to = true;
    }
    return OPT_GO;
}

/* ---- the whole line ------------------------------------------------------------------------- */

/* Whether all operands and required options are there. */
static opt_result check_complete(const words *w)
{
    const opt_spec *const s = w->syntax;
    const size_t n = w->line->noperands;
    size_t want = 0;
    while (s->operands && s->operands[want]) want++;
    if (n > 0 && n < want)
        return bad_line(w, "a second %s is missing: give two or more", s->operands[n]);
    if (n < want) return bad_line(w, "%s is missing", s->operands[n]);
    if (n > want && !s->more) return bad_line(w, "unexpected word '%s'", w->argv[want]);
    for (size_t i = 0; i < s->nown + s->ncommon; i++) {
        const opt *const o = opt_row(s, i);
        char buf[64];
        if (o->required && !w->line->given[i])
            return bad_line(w, "%s %s is missing: %s", option_name(buf, o), o->metavar, o->help);
    }
    return OPT_GO;
}

opt_result opt_parse(const opt_spec *syntax, int argc, char **argv, opt_line *line)
{
    words w = {syntax, line, argc, 0, argv};
    bool only_operands = false;
    opt_format format;
    *line = (opt_line){0};
    PARE_ASSERT(syntax->nown + syntax->ncommon <= OPT_MOST_ROWS);
    if (opt_asks_help(&format, argc, argv)) {
        opt_explain(stdout, syntax, format);
        return OPT_DONE;
    }
    opt_result r = OPT_GO;
    while (r == OPT_GO && w.at < w.argc) {
        char *word = argv[w.at++];
        if (only_operands || word[0] != '-' || !word[1])
            argv[line->noperands++] = word; /* never overtakes w.at: nothing unread is lost */
        else if (strcmp(word, "--") == 0)
            only_operands = true;
        else if (word[1] == '-')
            r = long_option(&w, word);
        else
            r = short_options(&w, word);
    }
    return r == OPT_GO ? check_complete(&w) : r;
}

bool opt_given(const opt_spec *syntax, const opt_line *line, const char *name)
{
    for (size_t i = 0; i < syntax->nown + syntax->ncommon; i++)
        if (strcmp(opt_row(syntax, i)->name, name) == 0) return line->given[i];
    PARE_ASSERT(false); /* no option of this command: a slip in its code */
    return false;
}
