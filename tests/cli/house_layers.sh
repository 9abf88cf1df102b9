# The check of the include arrows refuses each kind of wrong arrow, and nothing else.
mkdir -p t/src/base t/src/linalg t/src/model t/src/cert t/src/data t/src/cli t/include/pare
cd t
for h in base linalg model cert data train; do echo "#include <stddef.h>" >include/pare/$h.h; done
echo '#include <pare/base.h>' >include/pare/pare.h
echo '#include <cblas.h>' >src/linalg/blas.h
printf '#include <pare/base.h>\n#include "blas.h"\n' >src/linalg/gemm.c
echo '#include <omp.h>' >src/base/threads.c
echo '#include <pare/pare.h>' >src/cli/main.c
echo '#include <pare/linalg.h>' >src/model/verify.c
echo '#include <pare/model.h>' >src/cert/verify.c
echo '#include "linalg/blas.h"' >src/cert/shared.c
mkdir studies; echo '#include "cli/opt.h"' >studies/main.c; echo 'int x;' >src/cli/opt.h
python3 "$PARE_ROOT/tools/lint-layers" . && echo clean

echo '#include <pare/model.h>' >src/base/a.c          # up
echo '#include <pare/train.h>' >src/cert/b.c          # sideways
echo '#include "cert/x.h"' >src/data/b2.c; echo 'int x;' >src/cert/x.h
echo '#include "linalg/blas.h"' >studies/b3.c         # a program on a shared header
echo '#include <pare/pare.h>' >src/linalg/c.c         # everything
echo '#include <lapacke.h>' >src/model/d.c            # a library of another module
echo '#  include <omp.h>' >src/model/e.c
echo '#include "blas.h"' >src/model/f.c               # a private header of another module
echo '#include "../linalg/blas.h"' >src/cli/g.c
echo '#include "pare/base.h"' >src/cli/h.c
echo 'int x;' >src/model/gemm.c                       # a name twice
echo 'int x;' >include/pare/orphan.h                  # a header without a module
echo '#include <pare/cert.h>' >include/pare/linalg.h
mkdir src/attic
python3 "$PARE_ROOT/tools/lint-layers" . || echo "exit $?"
