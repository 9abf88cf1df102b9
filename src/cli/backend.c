/* backend.c - engines of small attention calls as options (backend.h). */
#include "backend.h"

#include <unistd.h>

const char *const backend_modes[] = {"auto",  "native", "zeroref", "strict",
                                     "paper", "sample", "chunk",   NULL};
const char *const backend_mode_help[] = {
    "native if the engine returns partial softmax sums, else zeroref",
    "exact; calls return partial softmax sums that are merged outside",
    "exact; plain softmax calls with one more key of zeros, merged outside",
    "exact; calls merge the results as well, nothing is computed outside",
    "the algorithm of Yu 2025 as printed, for comparison; it may fail and says so",
    "approximate; a random sample of the keys, with an error bound for each row",
    "approximate; each chunk attends to itself only, without any error bound",
    NULL};

pare_status backend_check(cli *c, const char *name)
{
    return cli_reword(c, pare_engine_check(name, &c->err), "engine:", "--backend:");
}

/* Our own client of ONNX Runtime: beside the command, as installed or as built. */
static const char *find_onnx_client(cli *c)
{
    static const char *const places[] = {"../share/pare/onnx.js", "../examples/pipe/onnx.js"};
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return NULL;
    self[n] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *const path = pare_path_beside(c->arena, self, places[i]);
        if (path && pare_file_exists(path)) return path;
    }
    return NULL;
}

pare_engine backend_engine(cli *c, const char *name, double timeout)
{
    return (pare_engine){name, find_onnx_client(c), timeout};
}

pare_status backend_open(cli *c, pare_oracle *out, const char *name, const pare_model *m,
                         const pare_oracle_caps *like, double timeout)
{
    const pare_engine e = backend_engine(c, name, timeout);
    return cli_reword(c, pare_engine_open(out, &e, m, like, &c->exec, &c->err),
                      "engine onnx:", "--backend onnx:");
}
