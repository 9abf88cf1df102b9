/* copy_folder.c - an uncut Hugging Face folder goes out as it came in (pare export, pare import). */
#include "out.h"

pare_status cli_copy_folder(cli *c)
{
    const char *const from = c->operand[0], *const temporary = cli_fresh(c, c->out);
    pare_model *m = NULL;
    facts f;
    char bytes[32];
    if (!temporary) return PARE_ERR_MEMORY;
    pare_folder_remove(temporary); /* of a process of our number that was killed */
    pare_status st = cli_load(c, &m, from);
    if (!st) st = cli_name(c, pare_export_like(m, m, from, temporary, 0, &c->err), from);
    if (!st) st = pare_folder_move(temporary, c->out, c->force, &c->err);
    if (st) pare_folder_remove(temporary);
    if (!st) st = cli_facts(c, &f, c->out, m, NULL, false);
    if (!st && c->json) {
        cJSON *const root = out_json_begin(c);
        st = out_json(c, root, root && out_json_facts(root, "output", &f));
    } else if (!st) {
        out_row("wrote", "%s, a folder like %s, %s bytes", c->out, from,
                out_count(bytes, f.file_bytes));
        out_row("check", "read back: the same model, weight by weight");
    }
    pare_model_free(m);
    return st;
}
