//! What an archive holds twice, out of place or in an odd form: the truth is what four readers that are not ours make of
//! it. GNU tar, bsdtar, busybox tar and Python's tarfile unpack it, each into a directory of its own, and either agree or
//! do not.
//!
//! The archive is a part of a real image, so that unpacking it four times is quick.

use std::collections::BTreeSet;

use fitout::finding::Severity;
use fitout::verify::scan::scan;
use serde_json::Value;

use crate::common::{Debian, image_of, tool};

/// A mutation of the archive.
pub struct Row {
    pub name: &'static str,
    /// Python: `add(name, data, **attributes of TarInfo)`, `members`, `tail` (bytes after the end), `cut` (bytes to lose).
    change: &'static str,
    /// All codes of the container family.
    codes: &'static [&'static str],
    /// Whether all readers unpack it without an error, and alike.
    agree: bool,
}

const fn row(name: &'static str, change: &'static str, codes: &'static [&'static str], agree: bool) -> Row {
    Row { name, change, codes, agree }
}

/// The rows.
pub const ROWS: &[Row] = &[
    row("tar: as it is", "", &[], true),
    row("tar: a path twice", "add('./etc/hostname', b'other\\n')", &["container-duplicate"], true),
    row("tar: a name that leaves the root", "add('./etc/../../outside', b'x')", &["container-escape"], false),
    row(
        "tar: below a link that stays inside",
        "add('./opt', type=DIR); add('./etc/l', type=LINK, linkname='../opt'); add('./etc/l/x', b'x')",
        &["container-below"],
        false,
    ),
    row(
        "tar: below a link that leaves the root",
        "add('./etc/l', type=LINK, linkname='../../outside'); add('./etc/l/x', b'x')",
        &["container-escape"],
        false,
    ),
    row("tar: below a file", "add('./etc/hostname/x', b'x')", &["container-below"], false),
    row("tar: a file in place of a directory", "add('./etc/systemd', b'x')", &["container-below"], false),
    row(
        "tar: a hard link to nothing",
        "add('./etc/h', type=HARD, linkname='./etc/nowhere')",
        &["container-malformed"],
        false,
    ),
    row("tar: a hard link", "add('./etc/h', type=HARD, linkname='./etc/hostname')", &[], true),
    row(
        "tar: a hard link that leaves the root",
        "add('./etc/h', type=HARD, linkname='./../outside')",
        &["container-escape"],
        false,
    ),
    row("tar: setuid", "add('./etc/su', b'x', mode=0o4755)", &[], true),
    row(
        "tar: long names, and letters beyond ASCII",
        "add('./etc/' + 'd' * 120, type=DIR); add('./etc/' + 'd' * 120 + '/' + 'f' * 150, b'x'); add('./etc/größe', b'x')",
        &[],
        true,
    ),
    row("tar: a long target", "add('./etc/l', type=LINK, linkname='t' * 180)", &[], true),
    row("tar: a line end in a name", "add('./etc/a\\nb', b'x')", &["container-name"], true),
    row("tar: a fifo", "add('./etc/f', type=FIFO)", &[], true),
    row(
        "tar: a device outside of /dev",
        "add('./etc/null', type=CHAR, devmajor=1, devminor=3)",
        &["container-device"],
        true,
    ),
    row("tar: a large owner", "add('./etc/o', b'x', uid=3000000, gid=3000000)", &["container-misread"], false),
    row("tar: something behind the end", "tail = b'x' * 512", &["container-trailing"], true),
    row(
        "tar: another archive behind the end",
        "tail = archive([('./etc/hostname', b'other\\n')])",
        &["container-trailing"],
        true,
    ),
    row("tar: no end", "cut = 'end'", &["container-truncated"], true),
    row("tar: cut in a file", "cut = 'file'", &["container-manifest", "container-truncated"], false),
    row("tar: a directory that is not listed", "add('./srv/x/y', b'x')", &["container-directory"], true),
    row("tar: a header of all entries", "headers = {'comment': 'x'}", &[], true),
];

/// Takes what is looked at out of the image.
const BASE: &str = r#"
import sys, tarfile
kept = ('./etc/systemd/', './etc/etcd/', './etc/init.d/', './etc/host', './usr/lib/fitout/')
parents = {'.', './etc', './etc/systemd', './etc/etcd', './etc/init.d', './usr', './usr/lib', './usr/lib/fitout'}
source = tarfile.open(sys.argv[1])
with tarfile.open(sys.argv[2], 'w', format=tarfile.PAX_FORMAT) as out:
    for m in source:
        if m.name in parents or m.name.startswith(kept):
            out.addfile(m, source.extractfile(m) if m.isreg() else None)
"#;

/// Makes the archive, unpacks it by each reader, and prints what each made of it.
const PROGRAM: &str = r#"
import hashlib, io, json, os, subprocess, sys, tarfile
image, desk, change = sys.argv[1:]
DIR, LINK, HARD, FIFO, CHAR = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE
members, headers, tail, cut = [], None, b'', None
def add(name, data=None, **attributes):
    m = tarfile.TarInfo(name)
    m.mode = 0o755 if attributes.get('type') == DIR else 0o644
    for key, value in attributes.items():
        setattr(m, key, value)
    members.append((m, data))
def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as t:
        for name, data in files:
            m = tarfile.TarInfo(name)
            m.size = len(data)
            t.addfile(m, io.BytesIO(data))
    return out.getvalue()
source = tarfile.open(image)
for m in source:
    members.append((m, source.extractfile(m).read() if m.isreg() else None))
exec(change)
out = io.BytesIO()
with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT, pax_headers=headers) as t:
    for m, data in members:
        if data is not None:
            m.size = len(data)
        t.addfile(m, io.BytesIO(data) if data is not None else None)
    end = t.offset
bytes = out.getvalue()
if cut == 'end':
    bytes = bytes[:end]
if cut == 'file':
    bytes = bytes[:end - 700]
path = desk + '/image.tar'
open(path, 'wb').write(bytes + tail)
python = 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], numeric_owner=True)'
readers = {
    'gnu': lambda to: ['tar', '--numeric-owner', '--same-permissions', '-xf', path, '-C', to],
    'bsd': lambda to: ['bsdtar', '--numeric-owner', '-xpf', path, '-C', to],
    'busybox': lambda to: ['busybox', 'tar', '-xpf', path, '-C', to],
    'python': lambda to: [sys.executable, '-W', 'ignore', '-c', python, path, to],
}
def seen(root):
    all = []
    for directory, directories, files in os.walk(root):
        for name in directories + files:
            at = os.path.join(directory, name)
            s = os.lstat(at)
            what = ''
            if os.path.islink(at):
                what = os.readlink(at)
            elif os.path.isfile(at):
                what = hashlib.sha256(open(at, 'rb').read()).hexdigest()
            mode = '' if os.path.islink(at) else oct(s.st_mode)
            all.append(repr((os.path.relpath(at, root), mode, s.st_uid, s.st_gid, what)))
    return sorted(all)
os.umask(0o022)
results = {}
for name, command in readers.items():
    to = f'{desk}/{name}/root'
    os.makedirs(to)
    done = subprocess.run(command(to), capture_output=True)
    outside = sorted(set(os.listdir(f'{desk}/{name}')) - {'root'})
    results[name] = {'ok': done.returncode == 0, 'seen': seen(to), 'outside': outside, 'said': done.stderr.decode(errors='replace')[-200:]}
first = results['gnu']
agree = all(r['ok'] and not r['outside'] and r['seen'] == first['seen'] for r in results.values())
differ = {n: sorted(set(r['seen']) ^ set(first['seen']))[:6] for n, r in results.items()}
print(json.dumps({'agree': agree, 'differ': differ, 'ok': {n: r['ok'] for n, r in results.items()}, 'said': {n: r['said'] for n, r in results.items()}}))
"#;

#[test]
fn what_verify_says_of_an_archive_its_readers_agree_with() {
    let mut wrong = Vec::new();
    let path = |p: &std::path::Path| p.to_str().expect("UTF-8").to_owned();
    let base = tempfile::NamedTempFile::new().expect("temporary file");
    tool("python3", &["-c", BASE, &path(&image_of(Debian::Trixie, "lis1")), &path(base.path())]);
    for Row { name, change, codes, agree } in ROWS {
        // Deep, so that what leaves the root of a reader stays here.
        let desk = tempfile::tempdir().expect("temporary directory");
        let truth = tool("python3", &["-c", PROGRAM, &path(base.path()), &path(desk.path()), change]);
        let truth: Value = serde_json::from_str(&truth).expect("JSON");
        let (_, found) = scan(&desk.path().join("image.tar")).unwrap_or_else(|failure| panic!("{failure}"));
        let found: BTreeSet<&str> =
            found.iter().filter(|f| f.severity != Severity::Notice).map(|finding| finding.code).collect();
        let found: Vec<&str> = found.into_iter().collect();
        if found != *codes {
            wrong.push(format!("{name}: `verify` says {found:?} instead of {codes:?}"));
        }
        if truth["agree"] != *agree {
            wrong.push(format!("{name}: readers agree: {}; {truth}", truth["agree"]));
        }
        assert!(*agree || !codes.is_empty(), "{name}: the table is silent of what readers read differently");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
