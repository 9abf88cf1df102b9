/* opt_help.c - a table of options as help, as a section of the man page, and as a branch of bash's
 * completion. */
#include "opt.h"

#include <string.h>

enum {
    COLUMNS = 80,
    LEFT = 24 /* where explanations start */
};

/* ---- text ---------------------------------------------------------------------------------- */

/* Words separated by single spaces, wrapped at 80 columns; the lines after the first are indented.
 * `column` is where the first one starts. */
static void wrap_words(FILE *to, const char *text, int column, int indent)
{
    bool first = true;
    while (*text) {
        const int n = (int)strcspn(text, " \n");
        if (n > 0) {
            if (!first && column + 1 + n > COLUMNS) {
                fprintf(to, "\n%*s", indent, "");
                column = indent;
            } else if (!first) {
                fputc(' ', to);
                column++;
            }
            fwrite(text, 1, (size_t)n, to);
            column += n;
            first = false;
        }
        text += n;
        text += strspn(text, " \n");
    }
    fputc('\n', to);
}

void opt_roff(FILE *to, const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) fputs("\\&", to);
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else
            fputc(*text, to);
        line_start = *text == '\n';
    }
}

const char *opt_list(char *buf, size_t size, const char *const *words)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; words[i] && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", words[i]);
    return buf;
}

/* ---- one option ---------------------------------------------------------------------------- */

/* The explanation, the words to choose from, the default: "[64]", "[required]", or nothing. With
 * choice_help each word has a line of its own behind it: then they are not listed here. */
static void explanation(char *buf, size_t size, const opt *o, bool choices)
{
    char value[120] = "", list[400] = "";
    if (o->required)
        snprintf(value, sizeof value, " [required]");
    else if (o->unset)
        snprintf(value, sizeof value, " [%s]", o->unset);
    else if (o->kind == OPT_SIZE)
        snprintf(value, sizeof value, " [%zu]", *(const size_t *)o->to);
    else if (o->kind == OPT_SEED)
        snprintf(value, sizeof value, " [%llu]", (unsigned long long)*(const uint64_t *)o->to);
    else if (o->kind == OPT_REAL || o->kind == OPT_SHARE)
        snprintf(value, sizeof value, " [%g]", *(const double *)o->to);
    else if (o->kind == OPT_CHOICE)
        snprintf(value, sizeof value, " [%s]", o->choices[*(const size_t *)o->to]);
    else if (o->kind == OPT_TEXT && *(const char *const *)o->to)
        snprintf(value, sizeof value, " [%s]", *(const char *const *)o->to);
    if (o->kind == OPT_CHOICE && choices) opt_list(list, sizeof list, o->choices);
    snprintf(buf, size, "%s%s%s%s", o->help ? o->help : "", *list ? ": " : "", list, value);
}

/* ---- help ---------------------------------------------------------------------------------- */

static void help_text(FILE *to, const char *left, const char *text)
{
    fprintf(to, "  %-*s", LEFT - 2, left);
    if ((int)strlen(left) > LEFT - 4) fprintf(to, "\n%*s", LEFT, "");
    wrap_words(to, text, LEFT, LEFT);
}

static void help_row(FILE *to, const opt *o, bool all)
{
    char letter[5] = "", left[80], text[1200];
    const bool listed = all && o->choice_help;
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->metavar ? " " : "",
             o->metavar ? o->metavar : "");
    explanation(text, sizeof text, o, !listed);
    help_text(to, left, text);
    for (size_t i = 0; listed && o->choices[i] && o->choice_help[i]; i++) {
        const bool wide =
            strlen(o->choices[i]) > 11; /* the explanation starts on a line of its own */
        fprintf(to, "%*s  %-12s", LEFT, "", o->choices[i]);
        if (wide) fprintf(to, "\n%*s", LEFT + 14, "");
        wrap_words(to, o->choice_help[i], LEFT + 14, LEFT + 14);
    }
}

/* Prints the rows that are to be seen, each group below its heading; returns how many are not. */
static size_t help_rows(FILE *to, const opt *rows, size_t n, bool all)
{
    const char *group = NULL;
    size_t hidden = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].group) group = rows[i].group;
        if (rows[i].rare && !all) {
            hidden++;
            continue;
        }
        if (group) fprintf(to, "%s\n", group);
        group = NULL; /* printed */
        help_row(to, &rows[i], all);
    }
    return hidden;
}

/* One alone is not worth a second page. */
static size_t rare_rows(const opt *rows, size_t n)
{
    size_t rare = 0;
    for (size_t i = 0; i < n; i++) rare += rows[i].rare;
    return rare;
}

static void explain_help(FILE *to, const opt_spec *s, bool all)
{
    fprintf(to, "Usage: pare %s %s\n%s\n\n", s->command, s->args, s->about);
    all = all || rare_rows(s->own, s->nown) + rare_rows(s->common, s->ncommon) == 1;
    size_t hidden = help_rows(to, s->own, s->nown, all);
    hidden += help_rows(to, s->common, s->ncommon, all);
    help_text(to, "-h, --help [all]", "this text; all: every option");
    fputs("\nExamples\n", to);
    for (size_t i = 0; i < 2 && s->examples[i]; i++) fprintf(to, "  pare %s\n", s->examples[i]);
    if (hidden)
        fprintf(to, "%zu more option%s: pare %s --help all\n", hidden, hidden == 1 ? "" : "s",
                s->command);
}

/* ---- man page ------------------------------------------------------------------------------ */

/* roff between two strings of markup. */
static void man_text(FILE *to, const char *before, const char *text, const char *after)
{
    fputs(before, to);
    opt_roff(to, text);
    fputs(after, to);
}

static void man_rows(FILE *to, const opt *rows, size_t n)
{
    char text[1200];
    for (const opt *o = rows; o < rows + n; o++) {
        if (o->group) man_text(to, ".PP\n\\fI", o->group, "\\fR\n");
        fputs(".TP\n\\fB", to);
        if (o->letter) fprintf(to, "\\-%c\\fR, \\fB", o->letter);
        man_text(to, "\\-\\-", o->name, "\\fR");
        if (o->metavar) man_text(to, " \\fI", o->metavar, "\\fR");
        explanation(text, sizeof text, o, !o->choice_help);
        man_text(to, "\n", text, "\n");
        for (size_t i = 0; o->choice_help && o->choices[i] && o->choice_help[i]; i++) {
            man_text(to, ".br\n\\fB", o->choices[i], "\\fR: ");
            man_text(to, "", o->choice_help[i], "\n");
        }
    }
}

/* ---- completion ---------------------------------------------------------------------------- */

/* ---- asking -------------------------------------------------------------------------------- */

bool opt_asks_help(opt_format *format, int argc, char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const bool bare = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        const bool all = strcmp(argv[i], "--help=all") == 0 ||
                         (bare && i + 1 < argc && strcmp(argv[i + 1], "all") == 0);
        *format = all                                         ? OPT_HELP_ALL
                  : strcmp(argv[i], "--help=man") == 0        ? OPT_MAN
                  : strcmp(argv[i], "--help=completion") == 0 ? OPT_COMPLETION
                                                              : OPT_HELP;
        if (bare || *format != OPT_HELP) return true;
    }
    return false;
}

void opt_explain(FILE *to, const opt_spec *syntax, opt_format format)
{
    switch (format) {
    case OPT_HELP:
    case OPT_HELP_ALL:
        explain_help(to, syntax, format == OPT_HELP_ALL);
        break;
    case OPT_MAN: {
        fprintf(to, ".SS \"pare %s\"\n\\fBpare %s\\fR ", syntax->command, syntax->command);
        man_text(to, "", syntax->args, "\n.PP\n");
        man_text(to, "", syntax->about, "\n");
        man_rows(to, syntax->own, syntax->nown);
        man_rows(to, syntax->common, syntax->ncommon);
        fputs(".PP\nExamples:\n.PP\n.nf\n", to);
        for (size_t i = 0; i < 2 && syntax->examples[i]; i++)
            man_text(to, "    pare ", syntax->examples[i], "\n");
        fputs(".fi\n", to);
    } break;
    case OPT_COMPLETION: {
        /* Sets `options` to what may follow a dash, `values` to what may follow the word before. */
        const size_t n = syntax->nown + syntax->ncommon;
        fprintf(to, "    '%s')\n        options='", syntax->command);
        for (size_t i = 0; i < n; i++)
            fprintf(to, "--%s ",
                    (i < syntax->nown ? &syntax->own[i] : &syntax->common[i - syntax->nown])->name);
        fputs("--help'\n", to);
        if (syntax->words) {
            fputs("        values='", to);
            for (size_t i = 0; syntax->words[i]; i++)
                fprintf(to, "%s%s", i ? " " : "", syntax->words[i]);
            fputs("'\n", to);
        }
        fputs("        case $prev in\n", to);
        for (size_t i = 0; i < n; i++) {
            const opt *const o =
                i < syntax->nown ? &syntax->own[i] : &syntax->common[i - syntax->nown];
            if (o->kind == OPT_FLAG) continue;
            if (o->letter) fprintf(to, "        -%c | --%s) values='", o->letter, o->name);
            if (!o->letter) fprintf(to, "        --%s) values='", o->name);
            for (size_t k = 0; o->kind == OPT_CHOICE && o->choices[k]; k++)
                fprintf(to, "%s%s", k ? " " : "", o->choices[k]);
            fputs("' ;;\n", to);
        }
        fputs("        esac\n        ;;\n", to);
    } break;
    }
}
