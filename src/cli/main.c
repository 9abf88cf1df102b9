/* main.c - pare: finds the command and runs it. */
#include "cli.h"
#include "interrupt.h"
#include "manual.h"
#include "out.h"

#include <string.h>

/* clang-format off */
static const command commands[] = {
    {"info", "MODEL", "shapes, parameters, bytes, multiply-adds", cmd_info, "Look at a model"},
    {"probe", "MODEL [--data FILE]", "what each cut would cost, and which theorem applies", cmd_probe, NULL},
    {"run", "MODEL --text TEXT", "generate text, or one forward pass", cmd_run, NULL},
    {"eval", "MODEL --data FILE", "accuracy, AUC or loss; KL divergence from another model", cmd_eval, NULL},
    {"fold", "MODEL -o OUT", "the same function with fewer weights", cmd_fold,
     "Make it smaller, with a certificate (length: a plan)"},
    {"width", "MODEL --data FILE -o OUT", "fewer dimensions", cmd_width, NULL},
    {"depth", "MODEL --layers K -o OUT", "fewer attention layers", cmd_depth, NULL},
    {"ticket", "MODEL --bits B -o OUT", "store the weights as a random seed and bit masks", cmd_ticket, NULL},
    {"quant", "MODEL --bits B -o OUT", "store the weights in 1.5 to 8 bits each", cmd_quant, NULL},
    {"length", "MODEL --oracle M -o PLAN", "run N tokens on an engine that takes only M", cmd_length, NULL},
    {"plan", "MODEL --max-bytes B -o OUT", "choose and combine the cuts for one budget", cmd_plan, NULL},
    {"verify", "CERT", "prove a certificate again; the exit code is the answer", cmd_verify,
     "Check and show"},
    {"compose", "CERT CERT... -o OUT", "one certificate for a chain of cuts", cmd_compose, NULL},
    {"report", "FILE... -o PAGE.html", "certificates, probes and training logs on one page", cmd_report, NULL},
    {"train", "--kind K --data FILE -o OUT", "train or resume graph transformers, GPTs, encoders", cmd_train,
     "Models and data"},
    {"import", "FILE -o OUT", "read a model of another program", cmd_import, NULL},
    {"export", "MODEL -o OUT.onnx", "write ONNX, or a Hugging Face folder", cmd_export, NULL},
    {"data", "KIND -o FILE", "make test data, or a model with random weights", cmd_data, NULL},
    {"repro", "all|width|... [-o DIR]", "the tables of the four papers, ours beside theirs", cmd_repro,
     "Figures"},
    {"bench", "[NAME...]", "how fast pare is on this machine", cmd_bench, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
/* clang-format on */

static const command *find_command(const char *name)
{
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

static void print_help(FILE *to)
{
    fputs("Usage: pare COMMAND ...\n"
          "Makes transformers smaller and certifies how much their outputs can change.\n",
          to);
    for (const command *c = commands; c->name; c++) {
        if (c->group) fprintf(to, "\n%s\n", c->group);
        fprintf(to, "  %-9s %s\n", c->name, c->summary);
    }
    fputs("\nOptions of a command: pare COMMAND --help; every option: pare COMMAND --help all\n"
          "MODEL: a file or folder of pare, Hugging Face (GPT-2, Llama, BERT) or llama2.c.\n"
          "Results go to stdout, everything else to stderr; --json prints one JSON object.\n"
          "Exit code: 0 done, 1 wrong command line, 2 bad input or I/O, 3 a limit such as\n"
          "--max-error cannot be met, 4 a certificate is not true, 130 stopped by Ctrl-C.\n"
          "\nExamples\n"
          "  pare data minesweeper -o board.npz\n"
          "  pare width models/minesweeper.safetensors --data board.npz --dim 8 \\\n"
          "      -o small.safetensors\n"
          "  pare verify small.safetensors\n",
          to);
}

static int unknown_command(const char *word, int argc, char **argv)
{
    const char *names[32] = {0};
    size_t n = 0;
    for (; commands[n].name; n++) names[n] = commands[n].name;
    names[n] = "help";
    return cli_unknown_word("", "command", word, names, argc, argv);
}

/* Of the first word. */
static bool asks_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* `pare help data sort` is `pare data sort --help`; a last word `all` asks for every option. */
static int help_on(int argc, char **argv)
{
    static char ask[] = "--help", ask_all[] = "--help=all";
    if (argc > 0 && strcmp(argv[0], "--man") == 0) return manual_page(stdout, commands);
    if (argc > 0 && strcmp(argv[0], "--completion") == 0)
        return manual_completion(stdout, commands);
    const bool all = argc > 0 && strcmp(argv[argc - 1], "all") == 0;
    char *words[3] = {NULL, NULL, NULL};
    int n = 0;
    if (all) argc--;
    if (argc == 0 || asks_help(argv[0])) {
        print_help(stdout);
        for (const command *c = commands; all && c->name; c++) {
            putchar('\n');
            words[0] = ask_all;
            c->run(1, words);
        }
        return 0;
    }
    const command *c = find_command(argv[0]);
    if (!c) return unknown_command(argv[0], argc, argv);
    if (argc > 1) words[n++] = argv[1];
    words[n++] = all ? ask_all : ask;
    return c->run(n, words);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return pare_exit_code(PARE_ERR_USAGE);
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        printf("pare %s\n", pare_version());
        return 0;
    }
    if (asks_help(word)) return help_on(argc - 2, argv + 2);
    opt_format format;
    if (word[0] == '-' && opt_asks_help(&format, argc - 1, argv + 1)) return help_on(0, NULL);
    const command *c = find_command(word);
    if (!c && word[0] == '-')
        return unknown_command(NULL, argc - 1, argv + 1); /* an option, no command */
    return c ? c->run(argc - 2, argv + 2) : unknown_command(word, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    interrupt_file_size();
    return cli_end(dispatch(argc, argv));
}
