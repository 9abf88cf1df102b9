/* opt.h - one table of options drives parsing and help, so that they cannot disagree.
 *
 * The default that help prints is what the variable holds before parsing. */
#ifndef PARE_CLI_OPT_H
#define PARE_CLI_OPT_H
#include <pare/base.h>

typedef enum opt_kind {
    OPT_FLAG,  /* bool */
    OPT_TEXT,  /* const char * */
    OPT_TEXTS, /* opt_texts: given several times, all are kept */
    OPT_SIZE,  /* size_t, min .. max */
    OPT_SEED,  /* uint64_t, all of it */
    OPT_REAL,  /* double, low .. high */
    OPT_CHOICE /* size_t: index into choices */
} opt_kind;

enum { OPT_MOST_TEXTS = 256 };
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
    const char *help;    /* of a choice: the words to choose from are put behind it */
    const char *unset;   /* what the default means when its value does not say it; NULL: print it */
    size_t min, max;
    double low, high;
    const char *const *choices; /* ended by NULL */
    bool joined; /* help has it on one line with the next one; the first one's help is a word */
} opt;

/* What a command is called with and how it explains itself. */
typedef struct opt_spec {
    const char *command; /* "data sort" */
    const char *args;    /* "MODEL -o OUT" */
    const char *about;   /* a sentence or two, lines broken by hand */
    const char *example; /* complete, without "pare" */
    const opt *own;      /* of this command */
    size_t nown;
    const opt *common; /* of many commands */
    size_t ncommon;
    const char *const *operands; /* names of the words that must be there, ended by NULL */
    bool more;                   /* the last one may be given several times */
} opt_spec;

/* Rows that many commands have. unset: what it means to leave --data out; NULL: it must be given.
 */
enum { OPT_MOST_SPLIT = 1 << 20 };
opt opt_data(const char **to, const char *help, const char *unset);
opt opt_split(size_t *to);

typedef enum opt_result {
    OPT_GO,   /* parsed */
    OPT_DONE, /* help was asked for and is on stdout: exit 0 */
    OPT_BAD   /* the complaint is on stderr: exit 1 */
} opt_result;

/* argv[0] is the first word after the command. The operands are moved to the front of argv, *n
 * says how many. */
opt_result opt_parse(const opt_spec *syntax, int argc, char **argv, size_t *n);
/* `pare COMMAND: message` and one line of usage on stderr; always OPT_BAD. */
opt_result opt_complain(const opt_spec *syntax, const char *fmt, ...) PARE_PRINTF(2, 3);
void opt_help(FILE *to, const opt_spec *syntax);
#endif
