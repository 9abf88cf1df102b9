/* manual.c - `pare help --man` and `pare help --completion`: what the tables of options do not say
 * stands here, the rest is printed by the commands themselves. */
#include "manual.h"
#include "opt.h"

#include <pare/pare.h>

static const char description[] =
    ".SH DESCRIPTION\n"
    "pare makes transformers smaller in four directions \\- width, depth, weights, length \\- and\n"
    "writes a certificate beside each result: an upper bound on how far any output moves, proven\n"
    "for stated inputs, and the hashes of everything it speaks of.\n"
    "\\fBpare verify\\fR proves a certificate again and refuses a wrong one.\n"
    ".PP\n"
    "MODEL is a file or a folder that pare can read: its own safetensors files, Hugging Face\n"
    "files and folders (GPT\\-2, Llama, BERT), files of llama2.c.\n"
    "Results go to standard output, messages and progress to standard error.\n"
    "Sizes take the suffixes k, M and G (powers of 1000); shares are written 0.75 or 75%.\n"
    "[x] after an explanation is the default; of an option that is given twice the last value\n"
    "counts.\n";

static const char after_commands[] =
    ".SH EXIT STATUS\n"
    ".TP\n\\fB0\\fR\nDone; a certificate holds.\n"
    ".TP\n\\fB1\\fR\nThe command line is wrong.\n"
    ".TP\n\\fB2\\fR\nBad input or I/O: a damaged or missing file, a wrong shape, an output that\n"
    "exists.\n"
    ".TP\n\\fB3\\fR\nA limit such as \\fB\\-\\-max\\-error\\fR cannot be met; nothing was "
    "written.\n"
    ".TP\n\\fB4\\fR\nA certificate is not true, or a self\\-check failed; the message says which "
    "part.\n"
    ".TP\n\\fB130\\fR\nStopped by Ctrl-C (or another signal); the message says what was saved.\n"
    ".PP\n"
    "With \\fB\\-\\-json\\fR every failure prints {\"command\", \"error\": {\"exit\", \"kind\", "
    "\"message\"}};\n"
    "a refused certificate prints {\"holds\": false, \"reason\"}.\n"
    ".SH FILES\n"
    ".TP\n\\fIOUT\\fR\nThe model: a safetensors file with its architecture in the metadata key\n"
    "\\fIpare\\fR.\n"
    ".TP\n\\fIOUT.cert.json\\fR\nIts certificate. It holds no times and no facts about the "
    "machine:\n"
    "same command, same seed, same bytes.\n"
    ".TP\n\\fIOUT.run.json\\fR\nTimes and sizes of the run that made it.\n"
    ".TP\n\\fIOUT\\fR.part\\-\\fIPID\\fR, \\fIOUT\\fR.\\fIPID\\fR\\-*.tmp\n"
    "What is being written; it gets its final name when it is complete and on the disk, so that\n"
    "\\fIOUT\\fR is the old file or the new one at any time.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBNO_COLOR\\fR\nWhen set and not empty, there are no colors on a terminal.\n"
    ".TP\n\\fBTMPDIR\\fR\nWhere \\fBpare run \\-o \\-\\fR keeps its array until it is complete, "
    "and\n"
    "\\fBpare bench\\fR what it shares with peers; default /tmp.\n"
    ".SH EXAMPLES\n"
    "A model with random weights, the same function with fewer weights, and the proof:\n"
    ".PP\n.nf\n"
    "    pare data model \\-o m.safetensors\n"
    "    pare fold m.safetensors \\-o small.safetensors\n"
    "    pare verify small.safetensors.cert.json\n"
    ".fi\n.PP\n"
    "A trained graph transformer cut from 64 dimensions to 8, on a new board:\n"
    ".PP\n.nf\n"
    "    pare data minesweeper \\-o board.npz\n"
    "    pare width models/minesweeper.safetensors \\-\\-data board.npz \\-\\-dim 8 \\-o "
    "small.safetensors\n"
    "    pare verify small.safetensors.cert.json\n"
    ".fi\n.PP\n"
    "A model of llama2.c with its vocabulary:\n"
    ".PP\n.nf\n"
    "    pare import stories260K.bin \\-\\-vocab tok512.bin \\-o stories.safetensors\n"
    "    pare run stories.safetensors \\-\\-text \"Once upon a time\"\n"
    ".fi\n";

int manual_page(FILE *to, const command *list)
{
    static char ask[] = "--help=man";
    fprintf(to,
            ".\\\" Made by `pare help --man` from the tables of options: do not edit.\n"
            ".TH PARE 1 \"\" \"pare %s\" \"User Commands\"\n"
            ".SH NAME\npare \\- make transformers smaller and certify what each cut costs\n"
            ".SH SYNOPSIS\n",
            pare_version());
    for (const command *c = list; c->name; c++) {
        fprintf(to, "%s\\fBpare %s\\fR ", c == list ? "" : ".br\n", c->name);
        opt_roff(to, c->args);
        fputc('\n', to);
    }
    fputs(description, to);
    fputs(".SH COMMANDS\n", to);
    for (const command *c = list; c->name; c++) {
        char *words[2] = {ask, NULL};
        const int rc = c->run(1, words);
        if (rc) return rc;
    }
    fputs(after_commands, to);
    return 0;
}

int manual_completion(FILE *to, const command *list)
{
    static char ask[] = "--help=completion";
    fputs("# bash completion of pare; made by `pare help --completion`: do not edit.\n"
          "_pare()\n"
          "{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=${COMP_WORDS[1]} options='' values=''\n"
          "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          to);
    for (const command *c = list; c->name; c++) fprintf(to, "%s ", c->name);
    fputs("help --help --version' -- \"$cur\"))\n"
          "        return\n"
          "    fi\n"
          "    [ \"$command\" = data ] && [ \"$COMP_CWORD\" -gt 2 ] && command=\"data "
          "${COMP_WORDS[2]}\"\n"
          "    case $command in\n",
          to);
    for (const command *c = list; c->name; c++) {
        char *words[2] = {ask, NULL};
        const int rc = c->run(1, words);
        if (rc) return rc;
    }
    fputs("    help) values='", to);
    for (const command *c = list; c->name; c++) fprintf(to, "%s%s", c == list ? "" : " ", c->name);
    fputs("' ;;\n"
          "    esac\n"
          "    case $cur in\n"
          "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
          "    *) COMPREPLY=($(compgen -W \"$values\" -- \"$cur\")) ;;\n"
          "    esac\n"
          "}\n"
          "complete -o default -F _pare pare\n",
          to);
    return 0;
}
