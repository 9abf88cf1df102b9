/* opt.h - one table of options drives parsing, help, the man page and the completion of bash, so
 * that they cannot disagree.
 *
 * The default that help prints is what the variable holds before parsing. */
#ifndef PARE_CLI_OPT_H
#define PARE_CLI_OPT_H
#include <pare/base.h>

typedef enum opt_kind {
    OPT_FLAG,  /* bool */
    OPT_TEXT,  /* const char * */
    OPT_TEXTS, /* opt_texts: given several times, all are kept */
    OPT_SIZE,  /* size_t, min .. max; 200k, 10M and 1.5G are taken as well */
    OPT_SEED,  /* uint64_t, all of it */
    OPT_REAL,  /* double, low .. high */
    OPT_SHARE, /* double, low .. high; 0.75 or 75% */
    OPT_CHOICE /* size_t: index into choices */
} opt_kind;

enum { OPT_MOST_TEXTS = 256, OPT_MOST_ROWS = 128 };
typedef struct opt_texts {
    const char *v[OPT_MOST_TEXTS];
    size_t n;
} opt_texts;

typedef struct opt {
    const char *name; /* "threads" is --threads */
    char letter;      /* 't' is -t; 0 = none */
    opt_kind kind;
    void *to;
    const char *metavar; /* NULL for flags */
    const char *help;    /* what it does, in one sentence; of a choice the words are put behind */
    const char *unset;   /* what the default means when its value does not say it; NULL: print it */
    const char *hint;    /* of a size: what else may be meant, said after a wrong value; or NULL */
    const char *group;   /* heading before this row; the rows after it belong to it as well */
    bool rare;           /* shown by `--help all` only */
    bool required;
    size_t min, max;
    double low, high;
    const char *const *choices;     /* ended by NULL */
    const char *const *choice_help; /* a line for each choice, or NULL */
} opt;

/* The rows of a command's own options, in an opt_spec. */
#define OPT_ROWS(rows) .own = (rows), .nown = sizeof(rows) / sizeof *(rows)

/* What a command is called with and how it explains itself. */
typedef struct opt_spec {
    const char *command;     /* "data sort" */
    const char *args;        /* "MODEL -o OUT" */
    const char *about;       /* a sentence or two, lines broken by hand */
    const char *examples[2]; /* complete, without "pare" */
    const opt *own;          /* of this command */
    size_t nown;
    bool seeded;       /* something is random: there is a --seed */
    const opt *common; /* of many commands */
    size_t ncommon;
    const char *const *operands; /* names of the words that must be there, ended by NULL */
    bool more;                   /* the last one may be given several times */
    const char *const *words;    /* what the first operand may be, ended by NULL; NULL: anything */
} opt_spec;

/* Rows that many commands have. unset: what it means to leave --data out; NULL: it is required. */
enum { OPT_MOST_SPLIT = 1 << 20 };
opt opt_data(const char **to, const char *help, const char *unset);
opt opt_split(size_t *to);
opt opt_column(const char **to);

typedef enum opt_result {
    OPT_GO,   /* parsed */
    OPT_DONE, /* help was asked for and is on stdout: exit 0 */
    OPT_BAD   /* the command line is wrong: `message` says how */
} opt_result;

/* What was found on a command line. */
typedef struct opt_line {
    size_t noperands;          /* moved to the front of argv */
    bool given[OPT_MOST_ROWS]; /* row by row: those of the command, then the common ones */
    char message[600];
} opt_line;

/* argv[0] is the first word after the command. */
opt_result opt_parse(const opt_spec *syntax, int argc, char **argv, opt_line *line);
/* Whether --name was on the command line. */
bool opt_given(const opt_spec *syntax, const opt_line *line, const char *name);

/* ---- explaining (opt_help.c) --------------------------------------------------------------- */

typedef enum opt_format {
    OPT_HELP,      /* the common options, a line or two each */
    OPT_HELP_ALL,  /* every option */
    OPT_MAN,       /* a section of the man page */
    OPT_COMPLETION /* a branch of bash's completion */
} opt_format;

/* Whether a command line asks for help, and in which form. */
bool opt_asks_help(opt_format *format, int argc, char *const *argv);
void opt_explain(FILE *to, const opt_spec *syntax, opt_format format);
/* Text for roff: - and \ escaped, a dot or quote at the start of a line made harmless. */
void opt_roff(FILE *to, const char *text);
/* "a, b, c" */
const char *opt_list(char *buf, size_t size, const char *const *words);
#endif
