/* Replays files through a target where libFuzzer is not there: `fuzz_NAME FILE-OR-FOLDER...`.
 * Prints nothing but the number of files: what is wrong ends the process. */
#include "fuzz.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data, (void)max_size;
    return size;
}

static void replay_file(const char *path, long bytes, size_t *count)
{
    FILE *const f = fopen(path, "rb");
    uint8_t *const data = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (!f || !data || fread(data, 1, (size_t)bytes, f) != (size_t)bytes) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, (size_t)bytes);
    free(data);
    ++*count;
}

static void replay(const char *path, size_t *count)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        fprintf(stderr, "%s: not there\n", path);
        exit(2);
    }
    DIR *const d = S_ISDIR(info.st_mode) ? opendir(path) : NULL;
    if (!d) {
        replay_file(path, (long)info.st_size, count);
        return;
    }
    for (const struct dirent *e; (e = readdir(d));) {
        char inside[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        replay(inside, count);
    }
    closedir(d);
}

int main(int argc, char **argv)
{
    size_t count = 0;
    for (int i = 1; i < argc; i++) replay(argv[i], &count);
    printf("%zu inputs\n", count);
    return 0;
}
