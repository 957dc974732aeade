//! Input and output of a command.

use super::*;

#[tokio::test]
async fn output_that_has_arrived_is_written_though_its_end_never_comes() {
    let (reader, mut writer) = tokio::io::simplex(64);
    writer.write_all(b"half a line").await.unwrap();
    let mut written = Vec::new();
    rest(&mut Some(reader), &mut [0; 4], &mut written).unwrap();
    assert_eq!(written, b"half a line");
    rest::<tokio::io::Empty>(&mut None, &mut [0; 4], &mut written).unwrap();
    assert_eq!(written, b"half a line");
}

#[tokio::test]
async fn input_is_sent_in_order_and_its_end_is_told() {
    let (sender, receiver) = mpsc::channel(4);
    let (mut reader, writer) = tokio::io::simplex(4);
    let sending = tokio::spawn(send(receiver, writer));
    for piece in ["one ", "two ", "three"] {
        sender.send(piece.as_bytes().to_vec()).await.unwrap();
    }
    drop(sender);
    let mut read = String::new();
    reader.read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "one two three");
    sending.await.unwrap();
}
