/* Parsing and explaining the options of a command, both from its table. */
#include "opt.h"
#include "out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows of many commands ------------------------------------------------------------------ */

opt opt_data(const char **to, const char *help, const char *unset)
{
    return (opt){
        .name = "data", .kind = OPT_TEXT, .to = to, .metavar = "D", .help = help, .unset = unset};
}

opt opt_split(size_t *to)
{
    return (opt){.name = "split",
                 .kind = OPT_SIZE,
                 .to = to,
                 .metavar = "K",
                 .help = "of a graph: which nodes are tested",
                 .max = OPT_MOST_SPLIT};
}

/* ---- complaining --------------------------------------------------------------------------- */

opt_result opt_complain(const opt_spec *syntax, const char *fmt, ...)
{
    va_list args;
    fprintf(stderr, "pare %s: ", syntax->command);
    va_start(args, fmt);
    out_escaped(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\nusage: pare %s %s    (more: pare %s --help)\n", syntax->command,
            syntax->args, syntax->command);
    return OPT_BAD;
}

/* "--threads" or "-o": as a user writes it. */
static const char *shown(char buf[64], const opt *o)
{
    if (o->letter)
        snprintf(buf, 64, "-%c", o->letter);
    else
        snprintf(buf, 64, "--%s", o->name);
    return buf;
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

static opt_result set_size(const opt_spec *syntax, const opt *o, const char *word)
{
    char buf[64];
    uint64_t v = 0;
    if (!whole_number(&v, word) || v < o->min || v > o->max)
        return opt_complain(syntax, "%s: '%s' is not a whole number from %zu to %zu", shown(buf, o),
                            word, o->min, o->max);
    *(size_t *)o->to = (size_t)v;
    return OPT_GO;
}

static opt_result set_seed(const opt_spec *syntax, const opt *o, const char *word)
{
    char buf[64];
    if (!whole_number(o->to, word))
        return opt_complain(syntax, "%s: '%s' is not a whole number from 0 to 18446744073709551615",
                            shown(buf, o), word);
    return OPT_GO;
}

static opt_result set_real(const opt_spec *syntax, const opt *o, const char *word)
{
    char buf[64], *end = NULL;
    const bool blank = word[0] == ' ' || word[0] == '\t' || word[0] == '\n';
    const double v = strtod(word, &end);
    if (!*word || blank || *end || !(v >= o->low && v <= o->high))
        return opt_complain(syntax, "%s: '%s' is not a number from %g to %g", shown(buf, o), word,
                            o->low, o->high);
    *(double *)o->to = v;
    return OPT_GO;
}

static void choice_list(char *buf, size_t room, const opt *o)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; o->choices[i] && used < room; i++)
        used += (size_t)snprintf(buf + used, room - used, "%s%s", i ? "|" : "", o->choices[i]);
}

static opt_result set_choice(const opt_spec *syntax, const opt *o, const char *word)
{
    char buf[64], list[128];
    for (size_t i = 0; o->choices[i]; i++)
        if (strcmp(word, o->choices[i]) == 0) {
            *(size_t *)o->to = i;
            return OPT_GO;
        }
    choice_list(list, sizeof list, o);
    return opt_complain(syntax, "%s: '%s' is not one of %s", shown(buf, o), word, list);
}

static opt_result add_text(const opt_spec *syntax, const opt *o, const char *word)
{
    char buf[64];
    opt_texts *const t = o->to;
    if (!*word) return opt_complain(syntax, "%s: the value is empty", shown(buf, o));
    if (t->n == OPT_MOST_TEXTS)
        return opt_complain(syntax, "%s: given more than %d times", shown(buf, o), OPT_MOST_TEXTS);
    t->v[t->n++] = word;
    return OPT_GO;
}

static opt_result set_value(const opt_spec *syntax, const opt *o, const char *word)
{
    char buf[64];
    switch (o->kind) {
    case OPT_FLAG:
        break; /* has none */
    case OPT_TEXT:
        if (!*word) return opt_complain(syntax, "%s: the value is empty", shown(buf, o));
        *(const char **)o->to = word;
        return OPT_GO;
    case OPT_TEXTS:
        return add_text(syntax, o, word);
    case OPT_SIZE:
        return set_size(syntax, o, word);
    case OPT_SEED:
        return set_seed(syntax, o, word);
    case OPT_REAL:
        return set_real(syntax, o, word);
    case OPT_CHOICE:
        return set_choice(syntax, o, word);
    }
    return OPT_BAD;
}

/* ---- words --------------------------------------------------------------------------------- */

typedef struct words {
    int argc, at;
    char **argv;
} words;

static const opt *find(const opt_spec *syntax, const char *name, size_t length, char letter)
{
    for (size_t i = 0; i < syntax->nown + syntax->ncommon; i++) {
        const opt *o = i < syntax->nown ? &syntax->own[i] : &syntax->common[i - syntax->nown];
        if (letter ? o->letter == letter
                   : strlen(o->name) == length && strncmp(o->name, name, length) == 0)
            return o;
    }
    return NULL;
}

/* The next word as the value of o. A word that looks like an option is more often a forgotten
 * value than meant: who means it writes --opt=-x. A negative number gets its range error. */
static opt_result take_next(const opt_spec *syntax, const opt *o, words *w, const char *as)
{
    const char *next = w->at < w->argc ? w->argv[w->at] : NULL;
    const bool dashed = next && next[0] == '-' && next[1] && !(next[1] >= '0' && next[1] <= '9');
    if (!next || dashed) return opt_complain(syntax, "%s needs a value", as);
    w->at++;
    return set_value(syntax, o, next);
}

static opt_result long_option(const opt_spec *syntax, words *w, const char *word)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    const opt *o = find(syntax, name, equals ? (size_t)(equals - name) : strlen(name), 0);
    if (!o) return opt_complain(syntax, "unknown option '%s'", word);
    if (o->kind == OPT_FLAG) {
        if (equals) return opt_complain(syntax, "--%s takes no value: '%s'", o->name, word);
        *(bool *)o->to = true;
        return OPT_GO;
    }
    return equals ? set_value(syntax, o, equals + 1) : take_next(syntax, o, w, word);
}

/* -q, -qf, -t 2, -t2 */
static opt_result short_options(const opt_spec *syntax, words *w, const char *word)
{
    for (const char *p = word + 1; *p; p++) {
        const opt *o = find(syntax, "", 0, *p);
        if (!o && word[2]) return opt_complain(syntax, "unknown option '-%c' in '%s'", *p, word);
        if (!o) return opt_complain(syntax, "unknown option '%s'", word);
        if (o->kind != OPT_FLAG) {
            const char as[3] = {'-', *p, '\0'};
            return p[1] ? set_value(syntax, o, p + 1) : take_next(syntax, o, w, as);
        }
        *(bool *)o->to = true;
    }
    return OPT_GO;
}

static opt_result operands_check(const opt_spec *syntax, char **argv, size_t n)
{
    size_t want = 0;
    while (syntax->operands && syntax->operands[want]) want++;
    if (n < want) return opt_complain(syntax, "%s is missing", syntax->operands[n]);
    if (n > want && !syntax->more) return opt_complain(syntax, "unexpected word '%s'", argv[want]);
    return OPT_GO;
}

/* Asked for anywhere before `--`, help wins over everything else on the line, mistakes too. */
static bool asks_for_help(const words *w)
{
    for (int i = 0; i < w->argc && strcmp(w->argv[i], "--") != 0; i++)
        if (strcmp(w->argv[i], "--help") == 0 || strcmp(w->argv[i], "-h") == 0) return true;
    return false;
}

opt_result opt_parse(const opt_spec *syntax, int argc, char **argv, size_t *n)
{
    words w = {argc, 0, argv};
    bool only_operands = false;
    *n = 0;
    if (asks_for_help(&w)) {
        opt_help(stdout, syntax);
        return OPT_DONE;
    }
    while (w.at < w.argc) {
        char *word = argv[w.at++];
        opt_result r = OPT_GO;
        if (only_operands || word[0] != '-' || !word[1])
            argv[(*n)++] = word; /* never overtakes w.at: nothing unread is lost */
        else if (strcmp(word, "--") == 0)
            only_operands = true;
        else if (word[1] == '-')
            r = long_option(syntax, &w, word);
        else
            r = short_options(syntax, &w, word);
        if (r != OPT_GO) return r;
    }
    return operands_check(syntax, argv, *n);
}

/* ---- help ---------------------------------------------------------------------------------- */

static void default_text(char *buf, size_t room, const opt *o)
{
    buf[0] = '\0';
    if (o->unset)
        snprintf(buf, room, " [%s]", o->unset);
    else if (o->kind == OPT_SIZE)
        snprintf(buf, room, " [%zu]", *(const size_t *)o->to);
    else if (o->kind == OPT_SEED)
        snprintf(buf, room, " [%llu]", (unsigned long long)*(const uint64_t *)o->to);
    else if (o->kind == OPT_REAL)
        snprintf(buf, room, " [%g]", *(const double *)o->to);
    else if (o->kind == OPT_CHOICE)
        snprintf(buf, room, " [%s]", o->choices[*(const size_t *)o->to]);
    else if (o->kind == OPT_TEXT && *(const char *const *)o->to)
        snprintf(buf, room, " [%s]", *(const char *const *)o->to);
}

static void help_row(FILE *to, const opt *o)
{
    char left[64], list[128] = "", value[80];
    const char *letter = "    ", with_letter[5] = {'-', o->letter, ',', ' ', '\0'};
    if (o->letter) letter = with_letter;
    if (o->kind == OPT_CHOICE) choice_list(list, sizeof list, o);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->metavar ? " " : "",
             o->metavar ? o->metavar : "");
    default_text(value, sizeof value, o);
    fprintf(to, "  %-25s %s%s%s\n", left, o->help, list, value);
}

/* "shape    --dim [64] --layers [4]", for commands with more options than a screen has lines; the
 * word is the help of the first. Returns how many rows of the table that was. */
static size_t help_joined(FILE *to, const opt *o)
{
    char value[80];
    size_t n = 0;
    fprintf(to, "  %-7s", o->help);
    do {
        default_text(value, sizeof value, &o[n]);
        if (!*value && o[n].metavar) snprintf(value, sizeof value, " %s", o[n].metavar);
        fprintf(to, " --%s%s", o[n].name, value);
    } while (o[n++].joined);
    fputc('\n', to);
    return n;
}

void opt_help(FILE *to, const opt_spec *syntax)
{
    fprintf(to, "Usage: pare %s %s\n%s\n\n", syntax->command, syntax->args, syntax->about);
    for (size_t i = 0; i < syntax->nown;)
        if (syntax->own[i].joined)
            i += help_joined(to, &syntax->own[i]);
        else
            help_row(to, &syntax->own[i++]);
    for (size_t i = 0; i < syntax->ncommon; i++) help_row(to, &syntax->common[i]);
    fprintf(to, "  %-25s %s\n\nExample: pare %s\n", "-h, --help", "this text; [x] is a default",
            syntax->example);
}
