/* pare: which command, and nothing else. */
#include "cli.h"
#include "interrupt.h"
#include "out.h"

#include <errno.h>
#include <string.h>

typedef struct command {
    const char *name, *args, *summary;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"info", "MODEL", "what it is: shapes, parameters, bytes, MACs", cmd_info},
    {"probe", "MODEL [--data D]", "spectra, ranks, theorems, what each cut would cost", cmd_probe},
    {"run", "MODEL --text TEXT", "go on with a text, or one pass over arrays", cmd_run},
    {"eval", "MODEL --data D", "accuracy, AUC, perplexity; KL to --reference", cmd_eval},
    {"train", "--kind K --data F -o MODEL", "graph transformers, GPTs, encoders; to resume",
     cmd_train},
    {"fold", "MODEL -o OUT", "the same function written with less, certified", cmd_fold},
    {"width", "MODEL --data D -o OUT", "fewer dimensions, certified", cmd_width},
    {"depth", "MODEL --layers K -o OUT", "fewer attention layers, certified", cmd_depth},
    {"ticket", "MODEL --bits B -o OUT", "a seed and masks in the place of weights, certified",
     cmd_ticket},
    {"length", "MODEL --oracle M -o PLAN", "N tokens on an engine that takes M: a plan",
     cmd_length},
    {"plan", "MODEL --max-bytes B -o OUT", "one budget over all directions, done", cmd_plan},
    {"verify", "CERT", "prove a certificate again from its files", cmd_verify},
    {"compose", "CERT CERT... -o OUT", "one certificate for a chain of cuts", cmd_compose},
    {"report", "FILE... -o PAGE.html", "certificates, probes, logs as one page to show",
     cmd_report},
    {"import", "IN -o OUT", "any model pare can read, as a pare file", cmd_import},
    {"export", "MODEL -o OUT.onnx", "for other programs: ONNX, Hugging Face folders", cmd_export},
    {"data", "KIND -o FILE", "make data, or a model with random weights", cmd_data},
    {"repro", "width [--data G] [-o DIR]", "the tables of the papers, ours beside theirs",
     cmd_repro},
    {"bench", "[NAME...]", "how fast this is here, peers beside it", cmd_bench},
};
#define NCOMMANDS (sizeof commands / sizeof *commands)

static const command *find(const char *name)
{
    for (size_t i = 0; i < NCOMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static void help(FILE *to)
{
    fputs("Usage: pare COMMAND ...\n"
          "Makes transformers smaller and proves what each cut costs.\n\n",
          to);
    for (size_t i = 0; i < NCOMMANDS; i++)
        fprintf(to, "  %-8s %-29s %s\n", commands[i].name, commands[i].args, commands[i].summary);
    fputs("  help     [COMMAND]                     this text, or that command's; --version\n\n"
          "Results go to stdout, everything else to stderr; --json makes stdout one object.\n"
          "Exit: 0 done, 1 usage, 2 bad input or I/O, 3 the promise is not met, 4 not verified.\n"
          "Example: pare data model -o m.st && pare fold m.st -o s.st && pare verify "
          "s.st.cert.json\n",
          to);
}

static int unknown(const char *word)
{
    out_error("pare: unknown command '%s'", word);
    fputs("usage: pare COMMAND ...    (more: pare --help)\n", stderr);
    return pare_exit_code(PARE_ERR_USAGE);
}

static bool asks_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* `pare help data sort` is `pare data sort --help`. */
static int help_on(int argc, char **argv)
{
    static char ask[] = "--help";
    char *words[3] = {NULL, ask, NULL};
    if (argc == 0 || asks_help(argv[0])) {
        help(stdout);
        return 0;
    }
    const command *c = find(argv[0]);
    if (!c) return unknown(argv[0]);
    if (argc == 1) return c->run(1, words + 1);
    words[0] = argv[1];
    return c->run(2, words);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return pare_exit_code(PARE_ERR_USAGE);
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        printf("pare %s\n", pare_version());
        return 0;
    }
    if (asks_help(word)) return help_on(argc - 2, argv + 2);
    const command *c = find(word);
    return c ? c->run(argc - 2, argv + 2) : unknown(word);
}

int main(int argc, char **argv)
{
    interrupt_file_size();
    const int rc = dispatch(argc, argv);
    /* A result that did not arrive is no result: a full disk, a closed pipe. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "pare: standard output: %s\n", strerror(errno));
        return rc ? rc : pare_exit_code(PARE_ERR_IO);
    }
    return rc;
}
