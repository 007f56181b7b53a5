//! Uploads and downloads by ByteStream, plain and by zstd, whole and broken.

use bazel_remote_apis::google::bytestream::{
    QueryWriteStatusRequest, ReadRequest, WriteRequest, byte_stream_client::ByteStreamClient,
};
use distlto_reapi_server::plain::Plain;
use distlto_reapi_server::{Break, CommittedSize, Cut, Digest, Faults, Options, Server, digest_of};
use tonic::Status;

type Error = Box<dyn std::error::Error>;
type Tested = Result<(), Error>;

fn server() -> Result<(Server, Plain), Error> {
    let server = Server::start(Options::default(), Faults::default())?;
    let client = Plain::new(&server.url())?;
    Ok((server, client))
}

/// Sends a blob's stream from an offset in messages of 64 KiB, and gives what was committed.
fn write(client: &Plain, name: &str, bytes: &[u8], offset: usize) -> Result<i64, Status> {
    let chunks: Vec<&[u8]> = bytes[offset..].chunks(64 << 10).collect();
    let message = |at: usize| WriteRequest {
        resource_name: if at == 0 { name.to_owned() } else { String::new() },
        write_offset: (offset + at * (64 << 10)) as i64,
        finish_write: at + 1 == chunks.len(),
        data: chunks[at].to_vec(),
    };
    let messages: Vec<WriteRequest> = (0..chunks.len()).map(message).collect();
    let mut stub = ByteStreamClient::new(client.channel.clone());
    Ok(client.wait(stub.write(tokio_stream::iter(messages)))?.into_inner().committed_size)
}

fn upload(kind: &str, digest: &Digest) -> String {
    format!("uploads/00000000-0000-0000-0000-000000000000/{kind}/{}/{}", digest.hash, digest.size_bytes)
}

/// Bytes that zstd makes shorter, but not to nothing.
fn content() -> Vec<u8> {
    (0..100_000u32).flat_map(|number| (number / 3).to_le_bytes()).collect()
}

#[test]
fn an_upload_that_was_cut_goes_on_where_it_broke() -> Tested {
    let (server, client) = server()?;
    let (bytes, digest) = (content(), digest_of(&content()));
    let name = upload("blobs", &digest);
    for how in [Break::Status, Break::Connection] {
        server.change(|faults| faults.cut_writes = Some(Cut { streams: 1, after: 150_000, how }));
        assert!(write(&client, &name, &bytes, 0).is_err(), "{how:?}");
        // A client that does not use the connection that was cut.
        let client = Plain::new(&server.url())?;
        let query = QueryWriteStatusRequest { resource_name: name.clone() };
        let mut stub = ByteStreamClient::new(client.channel.clone());
        let status = client.wait(stub.query_write_status(query.clone()))?.into_inner();
        assert_eq!((status.committed_size, status.complete), (150_000, false));
        assert_eq!(write(&client, &name, &bytes, 150_000)?, 400_000);
        assert!(client.wait(stub.query_write_status(query))?.into_inner().complete);
        assert_eq!(client.download(&digest)?, bytes);
        server.evict(&digest)?;
    }
    Ok(())
}

#[test]
fn bytes_that_are_not_those_of_the_digest_are_refused() -> Tested {
    let (_server, client) = server()?;
    let other = digest_of(b"other");
    assert!(write(&client, &upload("blobs", &other), b"bytes", 0).is_err());
    assert!(client.upload(&[content()]).is_ok() && client.missing(&[other])?.len() == 1);
    Ok(())
}

#[test]
fn compressed_blobs_go_both_ways_and_sizes_are_told_in_each_way() -> Tested {
    let (server, client) = server()?;
    let (bytes, digest) = (content(), digest_of(&content()));
    let short = zstd::encode_all(bytes.as_slice(), 1)?;
    assert!(short.len() < bytes.len());
    let (whole, sent) = (bytes.len() as i64, short.len() as i64);
    // For a blob that is not there, and for one that is.
    let expected = [
        (CommittedSize::Specified, sent, -1),
        (CommittedSize::Full, whole, whole),
        (CommittedSize::Stream, sent, whole),
        (CommittedSize::Unknown, -1, -1),
    ];
    for (committed_size, fresh, known) in expected {
        server.evict(&digest)?;
        server.change(|faults| faults.committed_size = committed_size);
        let name = upload("compressed-blobs/zstd", &digest);
        assert_eq!(write(&client, &name, &short, 0)?, fresh, "{committed_size:?}");
        assert_eq!(write(&client, &name, &short, 0)?, known, "{committed_size:?}");
        assert_eq!(client.download(&digest)?, bytes);
    }
    // An offset counts bytes of the blob, not of its stream.
    let resource_name = format!("compressed-blobs/zstd/{}/{}", digest.hash, digest.size_bytes);
    let request = ReadRequest { resource_name, read_offset: 100_000, read_limit: 0 };
    let read = client.wait(async {
        let mut stream = ByteStreamClient::new(client.channel.clone()).read(request).await?.into_inner();
        let mut read = Vec::new();
        while let Some(message) = stream.message().await? {
            read.extend(message.data);
        }
        Ok::<_, Status>(read)
    })?;
    assert_eq!(zstd::decode_all(read.as_slice())?, bytes[100_000..]);
    server.change(|faults| faults.no_zstd = true);
    assert!(write(&client, &upload("compressed-blobs/zstd", &digest), &short, 0).is_err());
    Ok(())
}
