/* report_files.h - small files of every kind that a report reads. */
#ifndef PARE_TESTS_REPORT_FILES_H
#define PARE_TESTS_REPORT_FILES_H
#include <pare_test.h>
#include <pare/report.h>

static const char cert_text[] =
    "{\"pare\":1,\"reduction\":\"width.auto\",\"seed\":\"7\","
    "\"input\":{\"path\":\"a<b>&'.st\",\"sha256\":\"%1$s\",\"tensors\":{}},"
    "\"output\":{\"path\":\"small.st\",\"sha256\":\"%1$s\",\"tensors\":{}},"
    "\"data\":{\"kind\":\"random\",\"count\":64,\"tokens\":8,\"inputs_sha256\":\"%1$s\","
    "\"seal\":\"%1$s\"},"
    "\"norm\":\"largest entry\",\"domain\":\"64 random inputs\",\"apriori\":\"inf\","
    "\"proven\":0.25,\"measured\":0.125,\"rounding\":900,"
    "\"hypotheses\":[{\"name\":\"weights are small\",\"holds\":false,\"value\":8,\"limit\":2},"
    "{\"name\":\"h0: kept, and the least of any 4\",\"holds\":true,\"value\":3,\"limit\":2}],"
    "\"statements\":[{\"name\":\"rows whose largest entry may have changed\",\"norm\":\"share\","
    "\"domain\":\"64 random inputs\",\"probability\":1,\"bound\":0.25},"
    "{\"name\":\"all edits\",\"norm\":\"largest entry\",\"domain\":\"edits\",\"probability\":0.99,"
    "\"bound\":0.5}],"
    "\"paper_not_sound\":{\"printed bound\":0.001},\"chain\":[]}\n";

static const char run_text[] =
    "{\"command\":\"width\",\"line\":\"pare width a.st -o "
    "small.st\",\"input\":{\"parameters\":4000,"
    "\"file_bytes\":16000,\"macs\":80000},\"output\":{\"parameters\":1000,\"file_bytes\":4000,"
    "\"macs\":20000},\"metric\":{\"name\":\"auc\",\"before\":0.9,\"after\":0.89},"
    "\"time_ms\":{\"before\":4,\"after\":1}}\n";

static const char probe_text[] =
    "{\"command\":\"probe\",\"line\":\"pare probe a.st --json\",\"input\":{\"path\":\"a.st\","
    "\"sha256\":\"%1$s\"},\"probe\":{\"parameters\":4000,\"largest_output\":10,"
    "\"weights\":[{\"name\":\"Wq\",\"block\":0,\"head\":0,\"norm\":2,\"effective_rank\":3},"
    "{\"name\":\"W1\",\"block\":0,\"head\":null,\"norm\":\"inf\",\"effective_rank\":5}],"
    "\"stream\":[{\"place\":\"h0\",\"axes\":[1,0.1,0.001]}],"
    "\"theorems\":[{\"theorem\":\"Theorem 3.3\",\"method\":\"jl\",\"hypothesis\":\"small\","
    "\"where\":\"layer 0\",\"holds\":false,\"value\":8,\"limit\":2,\"factor\":4}],"
    "\"cuts\":[{\"method\":\"auto\",\"parameters\":1000,\"largest\":0.5,\"metric\":0.9},"
    "{\"method\":\"auto\",\"parameters\":100,\"largest\":5,\"metric\":0.7},"
    "{\"method\":\"jl\",\"dim\":4,\"refused\":\"a skip\"}],"
    "\"depth\":{\"heads\":[{\"block\":0,\"head\":0,\"eta\":0.5,\"entropy\":null}],"
    "\"layers\":[{\"block\":0,\"x_max\":1,\"predicted_lost\":0.4}],"
    "\"curves\":[{\"kind\":\"pool\",\"points\":[{\"exact\":1,\"error\":0},"
    "{\"exact\":0,\"error\":0.5}]}],\"verdict\":\"collapsible\",\"why\":\"pool does\","
    "\"violated\":\"nothing\"},"
    "\"metric\":{\"name\":\"auc\",\"before\":0.9},"
    "\"directions\":[{\"direction\":\"width\",\"can\":true,\"cut\":\"width --dim 4\","
    "\"left\":\"6 %% of the parameters\",\"proven\":0.375,\"measured\":0.3125,\"metric\":0.875,"
    "\"domain\":\"one input\",\"why\":\"dim 2 <fails>\"},"
    "{\"direction\":\"length\",\"can\":null,\"cut\":\"\",\"left\":\"\",\"proven\":\"inf\","
    "\"measured\":null,\"metric\":null,\"domain\":\"\",\"why\":\"nobody asked\"}],"
    "\"untold\":[\"clusters <all>\"]}}\n";

static const char repro_text[] =
    "{\"command\":\"repro\",\"repro\":{\"name\":\"width\",\"tables\":[{\"name\":\"Table 1\","
    "\"about\":\"norms\",\"rows\":[{\"data\":\"board\",\"what\":\"mean\",\"published\":1.5,"
    "\"published_std\":null,\"ours\":1.4,\"ours_std\":0.1,\"verdict\":\"reproduced\","
    "\"note\":\"\"},{\"data\":\"board\",\"what\":\"claim\",\"published\":1,\"published_std\":null,"
    "\"ours\":2,\"ours_std\":null,\"verdict\":\"false as printed\",\"note\":\"see errata\"}]}],"
    "\"curves\":[{\"table\":\"Table 1\",\"data\":\"board\",\"what\":\"error\",\"x\":[1,2,3],"
    "\"y\":[1,0.1,0.01]}],\"notes\":[\"two runs\"]}}\n";

static const char log_text[] = "# pare train log 1\n# command: pare train --kind gpt\n"
                               "setting,run,step,loss,lr,norm,val,test,best\n"
                               "0,0,1,2.5,0.1,1,,,\n0,0,2,1.5,0.1,1,0.5,0.4,0.5\n"
                               "0,1,1,2.0,0.1,1,,,\n0,1,2,1.0,0.1,1,0.6,0.4,0.6\n";

enum { REPORT_FILES = 4 };
typedef struct report_files {
    char dir[200], file[REPORT_FILES + 1][260], out[260];
    const char *list[REPORT_FILES];
} report_files;

static inline void put_file(char path[260], const char *dir, const char *name, const char *text)
{
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    snprintf(path, 260, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, text, hash);
    assert_int_equal(fclose(f), 0);
}

static inline void make_files(report_files *r)
{
    test_mkdir(r->dir);
    put_file(r->file[0], r->dir, "small.st.cert.json", cert_text);
    put_file(r->file[1], r->dir, "probe.json", probe_text);
    put_file(r->file[2], r->dir, "repro.json", repro_text);
    put_file(r->file[3], r->dir, "log.csv", log_text);
    put_file(r->file[4], r->dir, "small.st.run.json", run_text);
    snprintf(r->out, sizeof r->out, "%s/page.html", r->dir);
    for (size_t i = 0; i < REPORT_FILES; i++) r->list[i] = r->file[i];
}
#endif
